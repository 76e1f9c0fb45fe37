"""Every client with 100,000 records in every codec: the client tests with more records."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_clients_with_100_000_records(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", f"--basetemp={tmp_path / 'clients'}"]
    command += ["tests/clients/test_round_trip.py", "tests/clients/test_tools.py"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "KAFKAPY_CLIENT_RECORDS": "100000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
