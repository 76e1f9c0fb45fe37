"""Our client over an unreliable network: no record is lost or written twice. A hundred rounds are in tests/full."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.chaos import run_rounds


@pytest.mark.timeout(300)
def test_a_few_rounds(tmp_path: Path) -> None:
    faults = run_rounds(tmp_path, 5, seed=1)
    assert faults["cut"] + faults["drop"] > 0
