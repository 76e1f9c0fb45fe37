"""Java's client and ours agree on 10,000 keys, and on 10,000 groups with each assignor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.agreement import assert_agreement
from tests.peers import kafka_directory


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_ten_thousand(tmp_path: Path) -> None:
    assert_agreement(kafka_directory("4.3.0"), tmp_path, 10_000, seed=10, timeout_s=1200)
