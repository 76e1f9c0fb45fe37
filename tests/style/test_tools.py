"""ruff and mypy, with the settings of pyproject.toml, find nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.style.sources import ROOT


@pytest.mark.timeout(300)
@pytest.mark.parametrize("arguments", [("ruff", "check", "--no-cache", "-q", "."), ("mypy",)], ids=["ruff", "mypy"])
def test_tool_finds_nothing(arguments):
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
