"""The watermark trace: one record reaches the high watermark of a leader and its follower, fetch by fetch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkapy.replica.fetch import FetchParams, FetchPartition
from tests.harness.replica import NODE_ID, ReplicaHarness, partition_image, values_of

FOLLOWER_ID = 2
TRACE = Path(__file__).with_name("watermark_trace.txt")


class Follower:
    """A simple follower: fetches at its own end, appends, then sets its watermark to min(own end, the leader's
    watermark)."""

    def __init__(self, harness):
        self.harness = harness
        self.log_end_offset = 0
        self.high_watermark = 0

    def fetch(self, max_wait_ms=0):
        """Sends the fetch; returns a list, to which (record count, high watermark) of the response is added later."""
        answers = []
        params = FetchParams(
            replica_id=FOLLOWER_ID, replica_epoch=102, max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20
        )
        asked = FetchPartition("t", 0, self.log_end_offset, 1 << 20, log_start_offset=0)
        self.harness.manager.fetch_messages(params, [asked], lambda results: self._append(results[0][1], answers))
        return answers

    def _append(self, result, answers):
        count = len(values_of(result))
        self.log_end_offset += count
        self.high_watermark = min(self.log_end_offset, result.high_watermark)
        answers.append((count, result.high_watermark))


@pytest.fixture
def harness(tmp_path):
    made = ReplicaHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID))
    made.put_topic("t", [partition_image(replicas=(NODE_ID, FOLLOWER_ID))])
    return made


def state(harness, follower):
    partition = harness.partition()
    remote = partition.remote_replicas[FOLLOWER_ID].log_end_offset
    return [
        partition.log.log_end_offset,
        max(remote, 0),  # An unknown offset counts as 0.
        partition.log.high_watermark,
        follower.log_end_offset,
        follower.high_watermark,
    ]


def test_trace(harness):
    follower = Follower(harness)
    lines = [line for line in TRACE.read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) == 4
    for line in lines:
        event, expected = (part.strip() for part in line.split("|"))
        fetch = re.fullmatch(r"fetch at (\d+), answer: (\d+) records?, high (\d+)", event)
        if event == "produce":
            assert [answer.error for answer in harness.append(b"record")] == [0]
        elif fetch:
            offset, count, high_watermark = map(int, fetch.groups())
            assert follower.log_end_offset == offset
            assert follower.fetch() == [(count, high_watermark)]
        else:
            assert event == "start"
        assert state(harness, follower) == [int(word) for word in expected.split()], event


def test_the_same_end_if_the_fetch_was_already_parked(harness):
    follower = Follower(harness)
    parked = follower.fetch(max_wait_ms=500)
    assert parked == []
    harness.append(b"record")
    assert parked == [(1, 0)]
    parked = follower.fetch(max_wait_ms=500)
    harness.scheduler.advance(499)
    assert parked == []
    harness.scheduler.advance(1)
    assert parked == [(0, 1)]
    assert state(harness, follower) == [1, 1, 1, 1, 1]
