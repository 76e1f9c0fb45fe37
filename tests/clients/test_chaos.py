"""Our client over an unreliable network: no record is lost or written twice. A hundred rounds are in tests/full."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.chaos import SECURITY_PROTOCOLS, run_rounds


@pytest.mark.timeout(300)
@pytest.mark.parametrize("security_protocol", SECURITY_PROTOCOLS)
def test_a_few_rounds(tmp_path: Path, security_protocol: str) -> None:
    faults = run_rounds(tmp_path, 5, 1, security_protocol)
    assert faults["cut"] + faults["drop"] > 0
