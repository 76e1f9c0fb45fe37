"""Transcripts of the controller: every `> command`, and its records and responses, in order.

After an intended change, run the tests with UPDATE_SCENARIOS=1 and review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.controller_harness import ControllerHarness

SCENARIOS = sorted(Path(__file__).parent.glob("controller_*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    expected = path.read_text().splitlines()
    harness = ControllerHarness()
    actual: list[str] = []
    for line in expected:
        if line.startswith("> "):
            actual += [line, *harness.run(line[2:])]
        elif not line or line.startswith("#"):
            actual.append(line)
    if os.environ.get("UPDATE_SCENARIOS"):
        path.write_text("\n".join(actual) + "\n")
    assert actual == expected
