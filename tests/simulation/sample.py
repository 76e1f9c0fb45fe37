"""The tests that each simulation has: a sample of its schedules, and that a seed determines a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.seeds import drawn_seed

REPLAYED_SEEDS = (0, 5, 19)


def sample(
    run_seed: Callable[..., Any], groups: int, schedules_per_group: int, outcome: Callable[[Any], object]
) -> tuple[Callable[[int], None], Callable[[], None], Callable[[int], None]]:
    """Returns three tests of the simulation whose schedules `run_seed` runs.

    The first one runs schedules with fixed seeds, and the second one as many with random seeds. The third one runs one
    seed twice and compares `outcome` of both runs.
    """

    @pytest.mark.parametrize("group", range(groups))
    def test_no_fixed_schedule_breaks_an_invariant(group: int) -> None:
        for seed in range(group * schedules_per_group, (group + 1) * schedules_per_group):
            run_seed(seed)

    def test_no_drawn_schedule_breaks_an_invariant() -> None:
        first = drawn_seed()
        for seed in range(first, first + groups * schedules_per_group):
            run_seed(seed)

    @pytest.mark.parametrize("seed", REPLAYED_SEEDS)
    def test_a_schedule_is_determined_by_its_seed(seed: int) -> None:
        first, again = run_seed(seed, is_traced=True), run_seed(seed, is_traced=True)
        assert first.world.trace == again.world.trace
        assert outcome(first) == outcome(again)

    return (
        test_no_fixed_schedule_breaks_an_invariant,
        test_no_drawn_schedule_breaks_an_invariant,
        test_a_schedule_is_determined_by_its_seed,
    )
