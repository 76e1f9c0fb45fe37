"""Transcripts of replication: every `> command`, and the replicas that it changed.

After an intended change, run the tests with UPDATE_SCENARIOS=1 and review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.replication_harness import ReplicationHarness, nodes_of

SCENARIOS = sorted(Path(__file__).parent.glob("replication_*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_transcript(path: Path, tmp_path: Path) -> None:
    expected = path.read_text().splitlines()
    actual = play(expected, tmp_path)
    if os.environ.get("UPDATE_SCENARIOS"):
        path.write_text("\n".join(actual) + "\n")
    assert actual == expected


def play(transcript: list[str], root: Path) -> list[str]:
    """Returns the transcript with its results replaced by the current ones; comments and blank lines stay.

    A line `= TITLE` begins a story with new nodes.
    """
    harness: ReplicationHarness | None = None
    played: list[str] = []
    stories = 0
    for line in transcript:
        if line.startswith("= "):
            directory = root / str(stories)
            directory.mkdir()
            stories += 1
            harness = ReplicationHarness(directory, nodes_of([each for each in transcript if each.startswith("> ")]))
            played.append(line)
        elif line.startswith("> "):
            assert harness is not None, "a transcript begins with a title"
            played.append(line)
            played.extend(harness.run(line[2:]))
        elif not line or line.startswith("#"):
            played.append(line)
    return played
