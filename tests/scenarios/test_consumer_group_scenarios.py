"""Transcripts of consumer groups (KIP-848): every `> command`, and the lines that it caused, in order.

After an intended change, run the tests with UPDATE_SCENARIOS=1 and review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.consumer_group_harness import ConsumerGroupHarness

SCENARIOS = sorted(Path(__file__).parent.glob("consumer_group_*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    expected = path.read_text().splitlines()
    harness = ConsumerGroupHarness()
    actual: list[str] = []
    for line in expected:
        if line.startswith("> "):
            actual += [line, *harness.run(line[2:])]
        elif not line or line.startswith("#"):
            actual.append(line)
    if os.environ.get("UPDATE_SCENARIOS"):
        path.write_text("\n".join(actual) + "\n")
    assert actual == expected
