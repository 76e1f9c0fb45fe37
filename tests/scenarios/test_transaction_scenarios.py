"""Transcripts of the transaction coordinator: every `> command`, and the lines that it caused, in order.

After an intended change, run the tests with UPDATE_SCENARIOS=1 and review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.transaction_harness import TransactionHarness

SCENARIOS = sorted(Path(__file__).parent.glob("transaction_*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    expected = path.read_text().splitlines()
    actual = play(expected)
    if os.environ.get("UPDATE_SCENARIOS"):
        path.write_text("\n".join(actual) + "\n")
    assert actual == expected


def play(transcript: list[str]) -> list[str]:
    """Returns the transcript with its results replaced by the current ones; comments and blank lines stay."""
    harness = TransactionHarness()
    played: list[str] = []
    for line in transcript:
        if line.startswith("> "):
            played.append(line)
            played.extend(harness.run(line[2:]))
        elif not line or line.startswith("#"):
            played.append(line)
    return played
