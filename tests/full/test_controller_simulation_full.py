"""Simulates the controller with thousands of random courses; tests/property runs a sample of them."""

import pytest

from tests.property.test_controller_simulation import run_simulation
from tests.seeds import drawn_seed

SIMULATIONS = 5000


@pytest.mark.parametrize("elr", [True, False])
def test_many_courses(elr):
    seed = drawn_seed()
    for number in range(SIMULATIONS):
        run_simulation(seed + number, elr=elr)
