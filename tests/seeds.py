"""Seeds of tests that draw their moments at random: each is printed, and the environment can set it again."""

from __future__ import annotations

import os
import random

VARIABLE = "KAFKAPY_SEED"


def drawn_seed() -> int:
    """Returns a random seed, or the one in KAFKAPY_SEED; prints it with the way to repeat the test."""
    given = os.environ.get(VARIABLE)
    seed = random.randrange(1 << 30) if given is None else int(given)
    print(f"seed {seed}: {VARIABLE}={seed} repeats this test")
    return seed
