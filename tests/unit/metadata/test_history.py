"""The metadata at an offset and at a time, and the explanations of a partition's changes."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.metadata import history as history_module
from kafkapy.metadata.history import LoggedRecord, MetadataHistory
from kafkapy.metadata.partition_history import explain_partition
from kafkapy.protocol.messages.data_records import LeaderChangeMessage
from kafkapy.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)

TOPIC_ID = b"t" * 16
TOPIC = TopicRecord(name="t", topic_id=TOPIC_ID)
PARTITION = PartitionRecord(
    partition_id=0, topic_id=TOPIC_ID, replicas=[1, 2, 3], isr=[1, 2, 3], leader=1, leader_epoch=0, partition_epoch=0
)
BROKERS = [RegisterBrokerRecord(broker_id=number, broker_epoch=number) for number in (1, 2, 3)]


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)


def broker_change(number: int, **fields: Any) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=number, **fields)


def history_of(*batches: list[Any]) -> MetadataHistory:
    """Returns a history whose batches are one second apart."""
    history = MetadataHistory()
    for number, batch in enumerate(batches):
        base = history.end_offset
        for message in batch:
            is_control = isinstance(message, LeaderChangeMessage)
            history.append(LoggedRecord(history.end_offset, base, 1, number * 1000, message, is_control))
    return history


def reasons(*batches: list[Any]) -> list[str]:
    """Returns the reasons of the changes after the creation of the partition."""
    history = history_of([*BROKERS, TOPIC, PARTITION], *batches)
    return [each.why for each in explain_partition(history, "t", 0) if each.partition is not None][1:]


def test_an_image_has_the_records_before_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_RECORDS_PER_IMAGE", 3)
    history = history_of([*BROKERS, TOPIC], [PARTITION], [change(leader=2)], [change(leader=3)], [change(leader=1)])
    leaders = [history.image_at(offset).topics.partition("t", 0) for offset in range(4, 9)]
    assert [None if each is None else each.leader for each in leaders] == [None, 1, 2, 3, 1]


def test_a_time_names_the_records_up_to_it() -> None:
    history = history_of([TOPIC], [PARTITION, change(leader=2)], [change(leader=3)])
    assert [history.offset_at(wall_ms) for wall_ms in (-1, 0, 999, 1000, 5000)] == [0, 1, 1, 3, 4]


def test_a_transaction_takes_effect_at_its_end() -> None:
    history = history_of(
        [TOPIC, BeginTransactionRecord(), PARTITION, AbortTransactionRecord()],
        [BeginTransactionRecord(), PARTITION, EndTransactionRecord()],
    )
    assert history.image_at(6).topics.partition("t", 0) is None
    assert history.image_at(7).topics.partition("t", 0) is not None
    assert [each.record.offset for each in explain_partition(history, "t", 0)] == [0, 5]


def test_a_record_before_the_end_is_refused() -> None:
    history = history_of([TOPIC])
    with pytest.raises(ValueError, match="after the end of the history"):
        history.append(LoggedRecord(0, 0, 1, 0, PARTITION))


@pytest.mark.parametrize(
    ("batches", "reason"),
    [
        (
            [[change(leader=2, isr=[2, 3]), broker_change(1, fenced=1)]],
            "broker 1 was fenced: it had stopped, or its heartbeats had; 2 is the first available replica in the ISR",
        ),
        (
            [[broker_change(1, in_controlled_shutdown=1), change(leader=2, isr=[2, 3])]],
            "broker 1 asked for a controlled shutdown; 2 is the first available replica in the ISR",
        ),
        ([[change(isr=[1, 2])]], "leader 1 reported that 3 had not caught up in time"),
        ([[change(isr=[1])], [change(isr=[1, 2])]], "leader 1 reported that 2 had caught up"),
        ([[change(leader=2)], [change(leader=1)]], "election of the preferred leader 1"),
        ([[change(isr=[1])], [change(leader=2, isr=[2])]], "unclean election: 2 was not in sync, records may be lost"),
        (
            [[change(isr=[1], eligible_leader_replicas=[2])], [change(leader=2, isr=[2])]],
            "2 is an eligible leader replica: it has all committed records",
        ),
        (
            [[change(isr=[1])], [change(isr=[], leader=-1, eligible_leader_replicas=[1])]],
            "no replica in the ISR can lead",
        ),
        ([[change(leader=1)]], "the same leader in a new epoch"),
        ([[change(replicas=[1, 2, 3, 4], adding_replicas=[4])]], "a reassignment began"),
    ],
)
def test_the_reason_of_a_change(batches: list[list[Any]], reason: str) -> None:
    assert reasons(*batches)[-1] == reason


def test_a_reassignment_is_completed_or_cancelled() -> None:
    begun = change(replicas=[1, 2, 3, 4], adding_replicas=[4], removing_replicas=[3])
    completed = change(replicas=[1, 2, 4], isr=[1, 2, 4], adding_replicas=[], removing_replicas=[])
    cancelled = change(replicas=[1, 2, 3], adding_replicas=[], removing_replicas=[])
    assert reasons([begun], [completed])[1] == "the reassignment was completed: the added replicas are in sync"
    assert reasons([begun], [cancelled])[1] == "the reassignment was cancelled"


def test_topics_and_controllers_belong_to_the_history() -> None:
    history = history_of(
        [LeaderChangeMessage(leader_id=7)], [*BROKERS, TOPIC, PARTITION], [RemoveTopicRecord(topic_id=TOPIC_ID)]
    )
    texts = [each.what.partition(",")[0] for each in explain_partition(history, "t", 0)]
    assert texts == [
        "controller 7 became active in epoch 1",
        "topic t was created",
        "created: leader 1 (epoch 0)",
        "topic t was deleted",
    ]
