"""A sample of the schedules of `tests.simulation.raft`."""

from tests.simulation.raft import run_seed
from tests.simulation.sample import sample

test_fixed_schedules, test_drawn_schedules, test_a_seed_determines_its_schedule = sample(
    run_seed, groups=10, schedules_per_group=20, outcome=lambda schedule: schedule.world.invariants.end
)
