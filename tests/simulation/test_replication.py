"""A sample of the schedules of `tests.simulation.replication`: fixed seeds, and as many that each run draws."""

import pytest

from tests.seeds import drawn_seed
from tests.simulation.replication.schedule import run_seed

GROUPS = 4
SCHEDULES_PER_GROUP = 10


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fixed_schedule_breaks_an_invariant(group):
    for seed in range(group * SCHEDULES_PER_GROUP, (group + 1) * SCHEDULES_PER_GROUP):
        run_seed(seed)


def test_no_drawn_schedule_breaks_an_invariant():
    first = drawn_seed()
    for seed in range(first, first + GROUPS * SCHEDULES_PER_GROUP):
        run_seed(seed)


def test_a_schedule_is_determined_by_its_seed():
    first, again = run_seed(5, is_traced=True), run_seed(5, is_traced=True)
    assert first.world.trace == again.world.trace
    assert first.world.history.committed == again.world.history.committed
