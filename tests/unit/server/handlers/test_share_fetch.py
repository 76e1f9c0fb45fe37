"""ShareFetch under quotas, and with partitions that do not exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.share_fetch import ShareFetchRequest
from kafkapy.server.handlers.share_fetch import MOST_UNKNOWN_PARTITIONS, handle_share_fetch
from tests.harness.shares import GROUP, ShareHarness

MEMBER = "member"


@pytest.fixture
def harness(tmp_path: Path) -> ShareHarness:
    return ShareHarness(tmp_path)


class Cost:
    """The cost of a request under a quota of `bound` bytes."""

    is_exempt = False

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.spent = 0

    def largest_fetch(self, max_bytes: int) -> int:
        return max_bytes

    def charge_time(self) -> int:
        return 0

    def charge_fetch(self, size: int) -> int:
        self.spent += size
        return 1000 if self.spent > self.bound else 0

    def refund_fetch(self, size: int) -> None:
        self.spent -= size

    def end(self) -> None:
        """Ends the measurement."""

    def note_delay(self, throttle_ms: int) -> bool:
        return True


def request(epoch: int, *partitions: tuple[bytes, int], acks: Any = ()) -> ShareFetchRequest:
    kind = ShareFetchRequest
    batches = [kind.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[1]) for a, b in acks]
    topics: dict[bytes, Any] = {}
    for topic_id, number in partitions:
        entry = kind.FetchPartition(partition_index=number, acknowledgement_batches=batches)
        topics.setdefault(topic_id, kind.FetchTopic(topic_id=topic_id)).partitions.append(entry)
    return kind(
        group_id=GROUP, member_id=MEMBER, share_session_epoch=epoch, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20,
        max_records=500, batch_size=500, topics=list(topics.values()),
    )  # fmt: skip


def test_a_fetch_beyond_its_quota_gets_and_acquires_no_records(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 4)
    partition = harness.topic.topic_id, 0
    cost = Cost(bound=10)
    throttled = harness.send(handle_share_fetch, request(0, partition), 2, cost=cost).response
    assert (throttled.throttle_time_ms, throttled.responses, cost.spent) == (1000, [], 0)
    assert harness.window() == [(0, 3, "AVAILABLE", 0)]
    cost.bound = 1000
    answer = harness.send(handle_share_fetch, request(1), 2, cost=cost).response
    (found,) = answer.responses[0].partitions
    assert [(each.first_offset, each.last_offset, each.delivery_count) for each in found.acquired_records] == [
        (0, 3, 1)
    ]
    assert cost.spent == len(found.records) > 0


def test_acknowledgements_are_stored_although_the_quota_is_exceeded(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 4)
    partition = harness.topic.topic_id, 0
    harness.send(handle_share_fetch, request(0, partition), 2)
    harness.append(*[b"value"] * 4)
    answer = harness.send(handle_share_fetch, request(1, partition, acks=[(0, 3)]), 2, cost=Cost(bound=10)).response
    (found,) = answer.responses[0].partitions
    assert (found.acknowledge_error_code, len(found.records or b""), found.acquired_records) == (Error.NONE, 0, [])
    assert harness.window() == [(4, 7, "AVAILABLE", 0)]


def test_a_session_has_a_limited_number_of_partitions_that_do_not_exist(harness: ShareHarness) -> None:
    unknown = [(bytes([1]) * 16, number) for number in range(2 * MOST_UNKNOWN_PARTITIONS)]
    existing = harness.topic.topic_id, 0
    harness.send(handle_share_fetch, request(0, *unknown, existing), 2)
    harness.send(handle_share_fetch, request(1, *unknown), 2)
    sessions = harness.services.shares.sessions
    assert sessions.partition_count == MOST_UNKNOWN_PARTITIONS + 1
    answer = harness.send(handle_share_fetch, request(2), 2).response
    errors = [each.error_code for topic in answer.responses for each in topic.partitions]
    assert errors == [Error.UNKNOWN_TOPIC_ID] * MOST_UNKNOWN_PARTITIONS


def test_a_fetch_in_a_wrong_epoch_changes_nothing(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 4)
    partition = harness.topic.topic_id, 0
    harness.send(handle_share_fetch, request(0, partition), 2)
    for epoch in (3, 2):
        answer = harness.send(handle_share_fetch, request(epoch, partition, acks=[(0, 3)]), 2).response
        assert answer.error_code == Error.INVALID_SHARE_SESSION_EPOCH
    answer = harness.send(handle_share_fetch, request(0, partition, acks=[(0, 3)]), 2).response
    assert answer.error_code == Error.INVALID_REQUEST
    assert harness.window() == [(0, 3, "ACQUIRED", 1)]
    assert harness.coordinator.writes == []
    answer = harness.send(handle_share_fetch, request(1, partition, acks=[(0, 3)]), 2).response
    assert answer.responses[0].partitions[0].acknowledge_error_code == Error.NONE


def test_share_groups_that_are_switched_off_leave_nothing(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 4)
    shares = harness.services.shares
    harness.send(handle_share_fetch, request(0, (harness.topic.topic_id, 0)), 2)
    shares.features_changed()
    assert (len(shares.sessions), len(harness.window())) == (1, 1)
    harness.settings.is_enabled = False
    shares.features_changed()
    assert (len(shares.sessions), list(harness.shares.all())) == (0, [])
