"""A sample of the chaos under the reliability patterns; tests/full/test_reliable_chaos_full.py has many kills."""

from __future__ import annotations

import pytest

from tests.reliable.chaos import Chaos


@pytest.mark.timeout(300)
def test_every_record_ends_once_whatever_is_killed(tmp_path):
    chaos = Chaos(tmp_path, seed=24)
    chaos.run(kills=4)
    assert chaos.input_count > 0
