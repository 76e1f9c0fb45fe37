"""A sample of the schedules of `tests.simulation.replication`."""

from collections import Counter

from tests.simulation.replication.schedule import run_seed
from tests.simulation.sample import sample

test_fixed_schedules, test_drawn_schedules, test_a_seed_determines_its_schedule = sample(
    run_seed,
    groups=4,
    schedules_per_group=10,
    outcome=lambda schedule: (schedule.world.history.committed, schedule.world.gated),
)


def test_gates_serve_a_share_of_the_requests() -> None:
    gated: Counter[str] = Counter()
    for seed in range(10):
        gated += run_seed(seed).world.gated
    assert gated["produces_awaited"] > 20, gated
    assert gated["follower_fetches_answered"] > 100, gated
    assert gated["produces_expired"] > 0, gated
    assert gated["fetches_answered"] > gated["follower_fetches_answered"], gated
