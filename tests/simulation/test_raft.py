"""A sample of the schedules of `tests.simulation.raft`: fixed seeds, and as many that each run draws."""

import pytest

from tests.seeds import drawn_seed
from tests.simulation.raft import run_seed

GROUPS = 10
SCHEDULES_PER_GROUP = 20


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fixed_schedule_breaks_an_invariant(group):
    for seed in range(group * SCHEDULES_PER_GROUP, (group + 1) * SCHEDULES_PER_GROUP):
        run_seed(seed)


def test_no_drawn_schedule_breaks_an_invariant():
    first = drawn_seed()
    for seed in range(first, first + GROUPS * SCHEDULES_PER_GROUP):
        run_seed(seed)


def test_a_schedule_is_determined_by_its_seed():
    first, again = run_seed(5, traced=True), run_seed(5, traced=True)
    assert first.world.trace == again.world.trace
