"""The wire messages of fetchers, and the assignment of partitions to them."""

from __future__ import annotations

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import Error
from kafkapy.metadata.features import fetch_request_version, list_offsets_request_version
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.replica.fetcher.assignment import fetcher_index
from kafkapy.replica.fetcher.fetch_request import build_fetch, build_list_offsets, fetch_version, leader_offsets
from kafkapy.replica.fetcher.fetch_session import FetchPlan
from kafkapy.replica.fetcher.followed_partition import FetchPosition
from kafkapy.replica.fetcher.leader_fetcher import LeaderOffset, OffsetQuery
from kafkapy.replica.fetcher.settings import FetchSettings
from kafkapy.replica.list_offsets import LATEST_TIMESTAMP
from kafkapy.types import ZERO_UUID, TopicPartition, java_string_hash

ID = b"i" * 16
SETTINGS = FetchSettings.from_config(BrokerConfig({"process.roles": "broker,controller", "node.id": "3"}))
PLAN = FetchPlan(
    9,
    4,
    {
        TopicPartition("t", 1): FetchPosition(ID, 10, 2, 5, 4),
        TopicPartition("t", 2): FetchPosition(ID, 11, 3, 6, -1),
    },
    [(TopicPartition("t", 0), ID), (TopicPartition("u", 7), b"u" * 16)],
)


@pytest.mark.parametrize(
    ("metadata_version", "fetch", "list_offsets"),
    [(7, 13, 7), (9, 14, 8), (10, 15, 8), (19, 16, 8), (21, 17, 9), (25, 17, 10), (27, 18, 10), (29, 18, 11),
     (30, 18, 11)],
)  # fmt: skip
def test_the_metadata_version_decides_the_versions(metadata_version, fetch, list_offsets):
    assert fetch_request_version(metadata_version) == fetch
    assert list_offsets_request_version(metadata_version) == list_offsets


@pytest.mark.parametrize("version", range(12, 19))
def test_a_fetch_request_of_every_version(version):
    request = FetchRequest.decode(build_fetch(PLAN, SETTINGS, 77, version).encode(version), version)
    assert (request.session_id, request.session_epoch) == (9, 4)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10 << 20)
    if version >= 15:
        assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (3, 77)
    else:
        assert request.replica_id == 3
    (topic,) = request.topics
    assert topic.topic_id == ID if version >= 13 else topic.topic == "t"
    assert [
        (
            asked.partition,
            asked.current_leader_epoch,
            asked.fetch_offset,
            asked.last_fetched_epoch,
            asked.log_start_offset,
            asked.partition_max_bytes,
        )
        for asked in topic.partitions
    ] == [(1, 5, 10, 4, 2, 1 << 20), (2, 6, 11, -1, 3, 1 << 20)]
    assert [each.partitions for each in request.forgotten_topics_data] == [[0], [7]]


def test_a_topic_without_an_id_is_fetched_by_name():
    plan = PLAN._replace(positions={TopicPartition("t", 1): FetchPosition(ZERO_UUID, 0, 0, 0, -1)})
    assert fetch_version(plan, 30) == 12
    assert fetch_version(PLAN, 30) == 18


@pytest.mark.parametrize("version", [7, 11])
def test_a_query_of_offsets_and_its_response(version):
    query = OffsetQuery(LATEST_TIMESTAMP, {TopicPartition("t", 1): 5, TopicPartition("t", 2): 6})
    request = ListOffsetsRequest.decode(build_list_offsets(query, 3).encode(version), version)
    (topic,) = request.topics
    assert (request.replica_id, topic.name) == (3, "t")
    asked = [(one.partition_index, one.current_leader_epoch, one.timestamp) for one in topic.partitions]
    assert asked == [(1, 5, -1), (2, 6, -1)]
    found = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=2, error_code=6, offset=40)
    response = ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[found])])
    assert leader_offsets(response) == {TopicPartition("t", 2): LeaderOffset(Error.NOT_LEADER_OR_FOLLOWER, 40)}


def test_partitions_are_divided_as_in_apache_kafka():
    assert [fetcher_index(TopicPartition("t", number), 3) for number in range(4)] == [
        (31 * 116 + number) % 3 for number in range(4)
    ]
    negative = next(
        name for name in (f"topic-{number}" for number in range(100)) if 31 * java_string_hash(name) % 2**32 >= 2**31
    )
    value = 31 * java_string_hash(negative) % 2**32 - 2**32
    assert fetcher_index(TopicPartition(negative, 0), 7) == -value % 7
    assert {fetcher_index(TopicPartition("t", number), 1) for number in range(10)} == {0}


def test_the_smallest_int_is_assigned_to_the_first_fetcher():
    """Java's absolute value of -2^31 is negative."""
    partition = (-(2**31) - 31 * java_string_hash("t")) % 2**32
    assert fetcher_index(TopicPartition("t", partition), 5) == 0
