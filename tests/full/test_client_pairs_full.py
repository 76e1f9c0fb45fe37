"""Each pair of writer and reader among the clients of every release, with every codec that both know.

KAFKAPY_LEGACY_RECORDS: the number of records per codec (25,000, which is 100,000 for a pair with four codecs).
KAFKAPY_LEGACY_WRITERS: a part of the writers' names, to divide the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.legacy.catalog import TRIED_CLIENTS

ROOT = Path(__file__).parents[2]
WRITERS = [each.name for each in TRIED_CLIENTS if os.environ.get("KAFKAPY_LEGACY_WRITERS", "") in each.name]


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("writer", WRITERS)
def test_every_reader_of(writer: str, tmp_path: Path) -> None:
    """Runs with a broker of its own, whose data is deleted afterwards."""
    command = [sys.executable, "-m", "pytest", "-q", f"--basetemp={tmp_path / 'pairs'}", "--tb=short"]
    command.append("tests/clients/legacy/test_pairs.py")
    count = os.environ.get("KAFKAPY_LEGACY_RECORDS", "25000")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "KAFKAPY_LEGACY_PAIRS": writer, "KAFKAPY_LEGACY_RECORDS": count},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
