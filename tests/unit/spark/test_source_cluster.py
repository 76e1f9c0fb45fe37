"""The driver's questions to the brokers: repetition, time-outs, and which partitions the options choose."""

from __future__ import annotations

import socket

import pytest

from kafkapy.client.cluster import PartitionInfo, TopicInfo
from kafkapy.errors import ApiError, Error
from kafkapy.spark.options import read_options
from kafkapy.spark.source_cluster import SourceCluster, SourcePartitions
from kafkapy.types import ZERO_UUID, TopicPartition


class ScriptedCluster(SourceCluster):
    """A cluster whose metadata are given: each question takes the next element, and raises it if it is an error."""

    def __init__(self, *results, **options):
        chosen = {} if {"subscribePattern", "assign"} & set(options) else {"subscribe": "a,b"}
        super().__init__(read_options({**SERVER, **chosen, **options}, is_streaming=False))
        self.results = list(results)

    def _topics(self):
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return {info.name: info for info in result}


SERVER = {"kafka.bootstrap.servers": "127.0.0.1:1", "fetchOffset.retryIntervalMs": "0"}
UNAVAILABLE = ApiError(Error.LEADER_NOT_AVAILABLE)


def topic(name, partitions, topic_id=ZERO_UUID, is_internal=False):
    infos = tuple(PartitionInfo(number, 1, 0) for number in range(partitions))
    return TopicInfo(name, topic_id, is_internal, infos)


@pytest.fixture
def cluster(request):
    """Makes clusters and closes them."""
    made = []

    def make(*results, **options):
        made.append(ScriptedCluster(*results, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_missing_broker_is_an_error_after_one_time_limit():
    with socket.socket() as reserved:  # a port on which nobody listens
        reserved.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{reserved.getsockname()[1]}"
        options = {"kafka.bootstrap.servers": server, "subscribe": "a", "kafka.default.api.timeout.ms": "400"}
        cluster = SourceCluster(read_options({**options, "fetchOffset.numRetries": "1000000"}, is_streaming=False))
        with pytest.raises(TimeoutError) as raised:
            cluster.partitions()
        cluster.close()
    message = str(raised.value)
    assert message.startswith("No metadata of the topics within 0.4 s. No broker can be reached")
    assert server in message and "refused" in message


def test_an_error_is_repeated_as_often_as_the_option_says(cluster):
    found = cluster(UNAVAILABLE, UNAVAILABLE, [topic("a", 1)], **{"fetchOffset.numRetries": "2"}).partitions()
    assert found.partitions == [TopicPartition("a", 0)]
    failing = cluster(UNAVAILABLE, UNAVAILABLE, [topic("a", 1)], **{"fetchOffset.numRetries": "1"})
    with pytest.raises(ApiError):
        failing.partitions()
    assert len(failing.results) == 1
    with pytest.raises(TimeoutError):
        cluster(TimeoutError(), [topic("a", 1)]).partitions()


def test_topics_are_found_with_their_ids_and_missing_ones_are_named(cluster):
    topic_id = bytes(15) + b"\1"
    found = cluster([topic("b", 2, topic_id)]).partitions()
    b0, b1 = TopicPartition("b", 0), TopicPartition("b", 1)
    assert found == SourcePartitions([b0, b1], {"b": "AAAAAAAAAAAAAAAAAAAAAQ"}, ["a"])
    assert cluster([topic("b", 1), topic("a", 1)]).partitions().ids == {}


def test_a_pattern_matches_whole_names_of_topics_that_are_not_internal(cluster):
    topics = [topic("words", 1), topic("words2", 1), topic("my-words", 1), topic("word_offsets", 1, is_internal=True)]
    found = cluster(topics, subscribePattern="words?|word_.*").partitions()
    assert found.partitions == [TopicPartition("words", 0)] and found.missing == []


def test_assigned_partitions_have_to_exist(cluster):
    assigned = '{"a": [1, 0], "b": [0]}'
    a1, a0 = TopicPartition("a", 1), TopicPartition("a", 0)
    found = cluster([topic("a", 3)], assign=assigned).partitions()
    assert found.partitions == [a1, a0] and found.missing == ["b"]
    with pytest.raises(ApiError, match="Partition a-1: "):
        cluster([topic("a", 1), topic("b", 1)], assign=assigned, **{"fetchOffset.numRetries": "0"}).partitions()
