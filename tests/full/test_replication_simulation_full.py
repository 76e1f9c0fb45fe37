"""Ten thousand schedules of replicated partitions; tests/simulation runs a sample of them."""

import pytest

from tests.seeds import drawn_seed
from tests.simulation.replication.schedule import run_seed

SCHEDULES = 10_000


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_no_schedule_breaks_an_invariant():
    first = drawn_seed()
    for seed in range(first, first + SCHEDULES):
        run_seed(seed)
