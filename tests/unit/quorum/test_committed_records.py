"""Images of the committed part of a metadata log that another node wrote."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.metadata.image import EMPTY_IMAGE
from kafkapy.protocol.messages.data_records import LeaderChangeMessage
from kafkapy.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    TopicRecord,
)
from kafkapy.quorum.committed_records import CommittedRecords
from kafkapy.quorum.metadata_batch import control_batch, metadata_batches
from tests.harness.metadata import bootstrapped, with_brokers, with_topic


def topic(name: str) -> tuple[Any, int]:
    return TopicRecord(name=name, topic_id=name.encode().ljust(16, b"-")), 0


def batches(base_offset: int, epoch: int, *records: tuple[Any, int]) -> bytes:
    return b"".join(metadata_batches(base_offset, epoch, 0, records)[0])


def test_images_follow_the_batches_up_to_the_end_offset():
    committed = CommittedRecords(EMPTY_IMAGE)
    content = control_batch(0, 3, 0, [LeaderChangeMessage(leader_id=1)]) + batches(1, 3, topic("a"), topic("b"))
    content += batches(3, 4, topic("c"))
    committed.replay(content, 3)
    taken = committed.take()
    assert taken is not None
    delta, image = taken
    assert sorted(image.topics.by_name) == ["a", "b"] and (image.offset, image.epoch) == (3, 3)
    assert len(delta.changed_topics) == 2
    assert committed.take() is None
    committed.replay(content[-len(batches(3, 4, topic("c"))) :], 4)
    assert (committed.next_offset, committed.take()[1].epoch) == (4, 4)


@pytest.mark.parametrize(
    ("end", "names"),
    [(EndTransactionRecord(), ["a", "b", "c"]), (AbortTransactionRecord(reason=""), ["a", "c"])],
)
def test_no_image_shows_a_part_of_a_transaction(end, names):
    committed = CommittedRecords(EMPTY_IMAGE)
    committed.replay(batches(0, 1, topic("a"), (BeginTransactionRecord(name="t"), 0), topic("b")), 3)
    assert committed.in_transaction and committed.take() is None
    committed.replay(batches(3, 1, (end, 0), topic("c")), 5)
    taken = committed.take()
    assert taken is not None and sorted(taken[1].topics.by_name) == names


def test_a_missing_batch_is_a_defect():
    committed = CommittedRecords(EMPTY_IMAGE)
    with pytest.raises(AssertionError, match="a batch is missing"):
        committed.replay(batches(1, 1, topic("a")), 2)


def test_a_snapshot_replaces_what_was_replayed():
    committed = CommittedRecords(EMPTY_IMAGE)
    committed.replay(batches(0, 1, topic("a"), (BeginTransactionRecord(name="t"), 0)), 2)
    image = with_topic(with_brokers(bootstrapped(), 1), "b")
    delta, taken = committed.load_snapshot(image)
    assert taken is image and delta.to_image(image.offset, image.epoch) == image
    assert not committed.in_transaction and committed.next_offset == image.offset
    committed.replay(batches(image.offset, 2, topic("c")), image.offset + 1)
    assert sorted(committed.take()[1].topics.by_name) == ["b", "c"]
