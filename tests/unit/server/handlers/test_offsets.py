"""Committed offsets on the wire, in every version. The answers are Apache Kafka 4.3's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_delete import OffsetDeleteRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.server.handlers.offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from tests.harness.group_handler import GroupHandlerHarness

UNKNOWN_ID = b"?" * 16
Partition = OffsetCommitRequest.OffsetCommitRequestPartition


def topic_fields(harness: GroupHandlerHarness, name: str, version: int) -> dict[str, Any]:
    """Returns the fields by which a request of that version names the topic."""
    if version < 10:
        return {"name": name}
    found = harness.metadata.image.topics.by_name.get(name)
    return {"topic_id": UNKNOWN_ID if found is None else found.topic_id}


def commit(harness: GroupHandlerHarness, version: int, *topics: tuple[str, list[Any]], **fields: Any) -> list[int]:
    asked = [
        OffsetCommitRequest.OffsetCommitRequestTopic(partitions=partitions, **topic_fields(harness, name, version))
        for name, partitions in topics
    ]
    response = harness.send(
        handle_offset_commit, OffsetCommitRequest(group_id="g", topics=asked, **fields), version
    ).response
    for answered, wanted in zip(response.topics, asked, strict=True):
        assert (answered.name, answered.topic_id) == (wanted.name, wanted.topic_id)
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


def fetch(
    harness: GroupHandlerHarness, version: int, wanted: list[tuple[str, list[int]]] | None
) -> list[tuple[Any, ...]]:
    if version >= 8:
        topics = wanted and [
            OffsetFetchRequest.OffsetFetchRequestTopics(
                partition_indexes=indexes, **topic_fields(harness, name, version)
            )
            for name, indexes in wanted
        ]
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=topics)
        response = harness.send(handle_offset_fetch, OffsetFetchRequest(groups=[group]), version).response
        (answer,) = response.groups
    else:
        single = wanted and [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in wanted
        ]
        request = OffsetFetchRequest(group_id="g", topics=single)
        answer = harness.send(handle_offset_fetch, request, version).response
    assert answer.error_code == 0
    return [
        (partition.partition_index, partition.committed_offset, partition.metadata, partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", range(1, 11))
def test_commit(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    unknown = Error.UNKNOWN_TOPIC_ID if version >= 10 else Error.UNKNOWN_TOPIC_OR_PARTITION
    errors = commit(
        harness,
        version,
        (
            "t",
            [
                Partition(partition_index=0, committed_offset=5, committed_metadata="note"),
                Partition(partition_index=1, committed_offset=6, committed_metadata=None),
                Partition(partition_index=9, committed_offset=7),
                Partition(partition_index=1, committed_offset=6, committed_metadata="x" * 4097),
            ],
        ),
        ("nope", [Partition(partition_index=0, committed_offset=8)]),
    )
    assert errors == [0, 0, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.OFFSET_METADATA_TOO_LARGE, unknown]
    assert fetch(harness, 5, [("t", [0])]) == [(0, 5, "note", 0)]
    assert commit(harness, version, ("nope", [Partition(partition_index=0, committed_offset=8)])) == [unknown]


@pytest.mark.parametrize("version", range(1, 11))
def test_commit_of_a_stranger(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    entry = ("t", [Partition(partition_index=0, committed_offset=5)])
    stranger = {"member_id": "nobody", "generation_id_or_member_epoch": 3}
    missing = Error.GROUP_ID_NOT_FOUND if version >= 9 else Error.ILLEGAL_GENERATION
    assert commit(harness, version, entry, **stranger) == [missing]
    member_id = harness.member_of("g")
    assert commit(harness, version, entry, **stranger) == [Error.UNKNOWN_MEMBER_ID]
    assert commit(harness, version, entry) == [Error.UNKNOWN_MEMBER_ID]
    mine = {"member_id": member_id, "generation_id_or_member_epoch": 1}
    assert commit(harness, version, entry, **mine) == [0]


@pytest.mark.parametrize("version", range(1, 11))
def test_fetch(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    assert commit(harness, 8, ("t", [Partition(partition_index=1, committed_offset=5, committed_metadata="note")])) == [
        0
    ]
    assert fetch(harness, version, [("t", [0, 1])]) == [(0, -1, "", 0), (1, 5, "note", 0)]
    unknown = Error.UNKNOWN_TOPIC_ID if version >= 10 else 0
    assert fetch(harness, version, [("nope", [3])]) == [(3, -1, "", unknown)]
    if version >= 2:
        assert fetch(harness, version, None) == [(1, 5, "note", 0)]


@pytest.mark.parametrize("version", range(1, 11))
def test_fetch_without_coordinator(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path, with_offsets_topic=False)
    if version >= 8:
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[])
        request = OffsetFetchRequest(groups=[group])
    else:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        request = OffsetFetchRequest(group_id="g", topics=[topic])
    response = harness.send(handle_offset_fetch, request, version).response
    if version >= 8:
        assert response.groups[0].error_code == Error.NOT_COORDINATOR
    elif version >= 2:
        assert (response.error_code, response.topics) == (Error.NOT_COORDINATOR, [])
    else:
        assert response.topics[0].partitions[0].error_code == Error.NOT_COORDINATOR


def test_offsets_of_a_topic_of_the_same_name(tmp_path: Path) -> None:
    """A topic is deleted while its coordinator is not notified, and created again: the old commit does not belong to
    the new topic."""
    harness = GroupHandlerHarness(tmp_path)
    assert commit(harness, 10, ("t", [Partition(partition_index=0, committed_offset=5)])) == [0]
    harness.delete_topic("t")
    assert fetch(harness, 8, [("t", [0])]) == [(0, 5, "", 0)]
    assert fetch(harness, 10, None) == []
    harness.coordinator.forget_topics(["t"], [])
    assert fetch(harness, 8, [("t", [0])]) == [(0, -1, "", 0)]


def test_delete(tmp_path: Path) -> None:
    harness = GroupHandlerHarness(tmp_path)
    assert commit(harness, 8, ("t", [Partition(partition_index=0, committed_offset=5)])) == [0]

    def delete(group: str, *wanted: tuple[str, int]) -> tuple[int, list[int]]:
        topics = [
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=number)]
            )
            for name, number in wanted
        ]
        response = harness.send(handle_offset_delete, OffsetDeleteRequest(group_id=group, topics=topics), 0).response
        return response.error_code, [found.error_code for topic in response.topics for found in topic.partitions]

    assert delete("nobody", ("t", 0)) == (Error.GROUP_ID_NOT_FOUND, [])
    assert delete("", ("t", 0)) == (Error.INVALID_GROUP_ID, [])
    assert delete("g", ("t", 0), ("t", 1), ("t", 9), ("nope", 0)) == (0, [0, 0, 3, 3])
    assert fetch(harness, 8, [("t", [0])]) == [(0, -1, "", 0)]
