"""The power fails at some sync of a broker's life; tests/full runs the complete series.

A failure prints its seed and the sync of each power failure. KAFKAPY_SEED=N repeats the series of that seed.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.power_failure import WHOLE_LIFE, Harness
from tests.seeds import drawn_seed

LIFE_SEED = 5
SAMPLE = 8


def test_the_power_fails_at_each_of_a_sample_of_syncs(tmp_path: Path) -> None:
    """Covers a start, creation, append, roll, checkpoint, snapshot, deletion, and a clean stop."""
    chance = random.Random(drawn_seed())
    syncs = Harness(tmp_path / "whole", LIFE_SEED).live(None, WHOLE_LIFE)
    assert syncs > 100
    for number in range(SAMPLE):
        harness = Harness(tmp_path / str(number), LIFE_SEED)
        harness.live(number * syncs // SAMPLE + chance.randrange(syncs // SAMPLE), WHOLE_LIFE)
        harness.check()
        harness.close()


@pytest.mark.parametrize("by_chance", [False, True], ids=["only what was synced", "by chance more"])
def test_the_power_fails_again_and_again(by_chance: bool, tmp_path: Path) -> None:
    """Starts each broker on the files that survived the one before it; the power may also fail during recovery."""
    seed = drawn_seed()
    chance = random.Random(seed)
    harness = Harness(tmp_path, seed, log_dirs=2 if by_chance else 1)
    for _ in range(6):
        harness.live(chance.randrange(140), harness.any_steps(15), by_chance=by_chance)
    harness.check()
    harness.close()


def test_a_kill_and_then_a_power_failure(tmp_path: Path) -> None:
    """The next broker serves the records that a killed broker wrote, so it must make them durable."""
    seed = drawn_seed()
    chance = random.Random(seed)
    harness = Harness(tmp_path, seed)
    for _ in range(4):
        harness.live(chance.randrange(30, 140), harness.any_steps(15), killed=True)
        harness.live(chance.randrange(10, 60), harness.any_steps(5))
    harness.check()
    harness.close()
