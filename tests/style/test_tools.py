"""The tools that check code, with the settings of pyproject.toml, find no faults, and every file is formatted."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.style.sources import ROOT


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "arguments",
    [("ruff", "check", "--no-cache", "-q", "."), ("ruff", "format", "--no-cache", "-q", "--check", "."), ("mypy",)],
    ids=["ruff check", "ruff format", "mypy"],
)
def test_a_tool_finds_no_fault(arguments):
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
