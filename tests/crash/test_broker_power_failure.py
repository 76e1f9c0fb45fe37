"""The power fails at any sync of a broker's life; a sample of the series in tests/full."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.power_failure import WHOLE_LIFE, Harness

SEED = 5
SAMPLE = 12


def test_the_power_fails_at_each_of_a_sample_of_syncs(tmp_path: Path) -> None:
    """Start, creation, append, roll, checkpoint, snapshot, deletion, clean stop."""
    syncs = Harness(tmp_path / "whole", SEED).live(None, WHOLE_LIFE)
    assert syncs > 100
    for number in range(SAMPLE):
        harness = Harness(tmp_path / str(number), SEED)
        harness.live(number * syncs // SAMPLE + random.randrange(syncs // SAMPLE), WHOLE_LIFE)
        harness.check()
        harness.close()


@pytest.mark.parametrize("by_chance", [False, True], ids=["only what was synced", "by chance more"])
def test_the_power_fails_again_and_again(by_chance: bool, tmp_path: Path) -> None:
    """Lives one after the other on what survived the one before, recovery included."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    harness = Harness(tmp_path, seed, log_dirs=2 if by_chance else 1)
    for _ in range(6):
        harness.live(chance.randrange(140), harness.any_steps(15), by_chance=by_chance)
    harness.check()
    harness.close()


def test_a_kill_and_then_a_power_failure(tmp_path: Path) -> None:
    """What a killed broker wrote is found, and promised again, by the next one: now it has to be durable."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    harness = Harness(tmp_path, seed)
    for _ in range(4):
        harness.live(chance.randrange(30, 140), harness.any_steps(15), killed=True)
        harness.live(chance.randrange(10, 60), harness.any_steps(5))
    harness.check()
    harness.close()
