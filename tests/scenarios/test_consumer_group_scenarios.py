"""Transcripts of consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071).

They contain every `> command`, and the lines that it caused, in order.

After an intended change, run the tests with UPDATE_SCENARIOS=1 and review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.consumer_group_harness import ConsumerGroupHarness
from tests.scenarios.share_group_harness import ShareGroupHarness
from tests.scenarios.streams_group_harness import StreamsGroupHarness

FOLDER = Path(__file__).parent
HARNESSES: dict[str, type[ConsumerGroupHarness]] = {
    "consumer_group_*.txt": ConsumerGroupHarness,
    "share_group_*.txt": ShareGroupHarness,
    "streams_group_*.txt": StreamsGroupHarness,
}
SCENARIOS = [(path, harness) for pattern, harness in HARNESSES.items() for path in sorted(FOLDER.glob(pattern))]


@pytest.mark.parametrize(("path", "make_harness"), SCENARIOS, ids=lambda each: getattr(each, "stem", ""))
def test_transcript(path: Path, make_harness: type[ConsumerGroupHarness]) -> None:
    expected = path.read_text().splitlines()
    harness = make_harness()
    actual: list[str] = []
    for line in expected:
        if line.startswith("> "):
            actual += [line, *harness.run(line[2:])]
        elif not line or line.startswith("#"):
            actual.append(line)
    if os.environ.get("UPDATE_SCENARIOS"):
        path.write_text("\n".join(actual) + "\n")
    assert actual == expected
