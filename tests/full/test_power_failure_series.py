"""The power fails at every sync of a broker's run, and at random syncs of many consecutive runs."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.crash.power_failure import WHOLE_LIFE, Harness

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(3600),
]
SEEDS = 60


@pytest.mark.parametrize("log_dirs", [1, 2])
@pytest.mark.parametrize("by_chance", [False, True], ids=["only what was synced", "by chance more"])
def test_every_sync_of_a_life(by_chance: bool, log_dirs: int, tmp_path: Path) -> None:
    syncs = Harness(tmp_path / "whole", seed=5, log_dirs=log_dirs).live(None, WHOLE_LIFE)
    for number in range(syncs):
        harness = Harness(tmp_path / "life", seed=5, log_dirs=log_dirs)
        harness.live(number, WHOLE_LIFE, by_chance=by_chance)
        harness.check()
        harness.close()
        shutil.rmtree(tmp_path / "life")
    print(f"{syncs} syncs")


@pytest.mark.parametrize("by_chance", [False, True], ids=["only what was synced", "by chance more"])
def test_many_failures_in_a_row(by_chance: bool, tmp_path: Path) -> None:
    """Runs many times; the second and later runs begin with a recovery, during which the power may fail too."""
    first = random.randrange(1 << 30)
    print(f"seeds from {first}")
    for seed in range(first, first + SEEDS):
        chance = random.Random(seed)
        harness = Harness(tmp_path / "lives", seed, log_dirs=chance.randint(1, 2))
        for _ in range(6):
            harness.live(chance.randrange(chance.choice((40, 160))), harness.any_steps(15), by_chance=by_chance)
        harness.check()
        harness.close()
        shutil.rmtree(tmp_path / "lives")


def test_kills_and_power_failures(tmp_path: Path) -> None:
    first = random.randrange(1 << 30)
    print(f"seeds from {first}")
    for seed in range(first, first + SEEDS):
        chance = random.Random(seed)
        harness = Harness(tmp_path / "lives", seed, log_dirs=chance.randint(1, 2))
        for _ in range(6):
            killed = chance.random() < 0.5
            harness.live(chance.randrange(chance.choice((40, 160))), harness.any_steps(15), killed=killed)
        harness.check()
        harness.close()
        shutil.rmtree(tmp_path / "lives")
