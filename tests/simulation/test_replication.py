"""A sample of the schedules of `tests.simulation.replication`."""

from tests.simulation.replication.schedule import run_seed
from tests.simulation.sample import sample

test_fixed_schedules, test_drawn_schedules, test_a_seed_determines_its_schedule = sample(
    run_seed, groups=4, schedules_per_group=10, outcome=lambda schedule: schedule.world.history.committed
)
