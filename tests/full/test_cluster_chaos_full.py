"""Five hundred rounds of chaos on three nodes (tests/cluster/chaos.py).

KAFKAPY_CHAOS_ROUNDS: the number of rounds (500). KAFKAPY_CHAOS_SEED: the seed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.cluster.chaos import run


@pytest.mark.full
@pytest.mark.timeout(43_200)
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    seed = int(os.environ.get("KAFKAPY_CHAOS_SEED") or random.randrange(1 << 30))
    print(f"seed {seed}")
    assert run(tmp_path, 0, int(os.environ.get("KAFKAPY_CHAOS_ROUNDS", "500")), seed, keeps_going=False) == 0
