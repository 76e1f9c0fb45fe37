"""Many kills of broker, services and application under the reliability patterns.

KAFKAPY_CHAOS_KILLS is their number (110), KAFKAPY_CHAOS_SEED the seed.
"""

from __future__ import annotations

import os

import pytest

from tests.reliable.chaos import Chaos

pytestmark = pytest.mark.full


@pytest.mark.timeout(3600)
def test_every_record_ends_once_in_the_output_or_the_dead_letters(tmp_path):
    chaos = Chaos(tmp_path, seed=int(os.environ.get("KAFKAPY_CHAOS_SEED", "1")))
    chaos.run(kills=int(os.environ.get("KAFKAPY_CHAOS_KILLS", "110")))
    print(f"{chaos.input_count} records, each once; kills: {dict(chaos.kills)}")
