"""Our client chooses the same partitions for keys, and the same assignments of groups, as Java's client.

The comparison of 10,000 keys and groups is in tests/full.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.agreement import assert_agreement


@pytest.mark.timeout(120)
def test_a_sample(kafka_libs: Path, tmp_path: Path) -> None:
    assert_agreement(kafka_libs, tmp_path, 250, seed=1, timeout_s=100)
