"""A hundred rounds of chaos between our client and the broker; KAFKAPY_CHAOS_SEED selects another hundred."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.clients.chaos import SECURITY_PROTOCOLS, run_rounds


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("security_protocol", SECURITY_PROTOCOLS)
def test_a_hundred_rounds(tmp_path: Path, security_protocol: str) -> None:
    faults = run_rounds(tmp_path, 100, int(os.environ.get("KAFKAPY_CHAOS_SEED", "2")), security_protocol)
    assert all(faults.values()), faults
