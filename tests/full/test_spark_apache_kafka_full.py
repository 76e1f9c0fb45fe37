"""The data source and its sink on Apache Kafka: the same tests as on kafkapy, transactions included."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.peers import ROOT, kafka_directory

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(900)]
MODULES = ("batch", "ranges", "sink", "stream")


def test_reading_and_writing(tmp_path):
    kafka_directory("4.3.0")  # fetched before the time limit of the tests begins
    files = [f"tests/spark/test_{name}.py" for name in MODULES]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"--basetemp={tmp_path / 'tests'}", *files],
        cwd=ROOT,
        env={**os.environ, "KAFKAPY_TEST_SERVER": "apache"},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-12_000:]
    assert "skipped" not in done.stdout
