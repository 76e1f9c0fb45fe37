"""The script `run-broker` without an environment: `--help` must not set one up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.style.sources import ROOT


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_is_printed_without_a_set_up(word: str, tmp_path: Path):
    for name in ("run-broker", "scripts", "kafkapy"):
        source = ROOT / name
        if source.is_dir():
            # Nothing that is compiled: in a fresh clone there is none.
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    environment = {**os.environ, "KAFKAPY_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"}
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [tmp_path / "run-broker", word], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: kafkapy broker start")
    assert sorted(tmp_path.iterdir()) == before
