"""Our client and Java's put keys into the same partitions, and share partitions in a group in the same way.

The 10,000 are in tests/full.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.agreement import assert_agreement


@pytest.mark.timeout(120)
def test_a_sample(kafka_libs: Path, tmp_path: Path) -> None:
    assert_agreement(kafka_libs, tmp_path, 250, seed=1, timeout_s=100)
