"""The driver's questions to the brokers: repetition, time-outs, and which partitions the options choose."""

from __future__ import annotations

import socket
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from kafkapy.client.cluster import PartitionInfo, TopicInfo, bootstrap_cluster
from kafkapy.client.offset_lookup import OffsetAndTimestamp
from kafkapy.errors import ApiError, Error
from kafkapy.spark import source_cluster
from kafkapy.spark.options import read_options
from kafkapy.spark.source_cluster import SourceCluster, SourcePartitions
from kafkapy.types import ZERO_UUID, TopicPartition


class ScriptedCluster(SourceCluster):
    """A cluster whose metadata are `results`: each look-up takes the next element, and raises it if it is an
    exception."""

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


class ScriptedNetwork:
    """A network whose metadata change: `wait_until` applies one cluster after the other until it is done."""

    clusters: list[dict[str, object]] = []

    def __init__(self, config, **_):
        self.lock = nullcontext()
        self.calls = []
        self.cluster = bootstrap_cluster([("h", 1)])
        self.metadata = SimpleNamespace(
            updates=5,
            allow_creation=True,
            set_topics=lambda names, wants_all: self.calls.append((set(names), wants_all)),
            request_update=lambda: self.calls.append("request_update"),
        )

    def start(self):
        self.calls.append("start")

    def close(self):
        self.calls.append("close")

    def wake_for(self, due_ms):
        self.calls.append(("wake_for", due_ms))

    def wait_until(self, is_done, timeout_s):
        assert timeout_s == 60.0 and not is_done()
        for cluster in ScriptedNetwork.clusters:
            self.metadata.updates += 1
            self.cluster = self.cluster._replace(**cluster)
            if is_done():
                return True
        return False

    def timed_out(self, message):
        return TimeoutError(message)


@pytest.fixture
def scripted(monkeypatch):
    """Returns a function that makes a SourceCluster, whose metadata requests return the given clusters one after the
    other."""
    monkeypatch.setattr(source_cluster, "Network", ScriptedNetwork)

    def make(*clusters, **options):
        monkeypatch.setattr(ScriptedNetwork, "clusters", list(clusters))
        chosen = {} if {"subscribePattern", "assign"} & set(options) else {"subscribe": "a,b"}
        given = {**SERVER, "fetchOffset.numRetries": "0", **chosen, **options}
        return SourceCluster(read_options(given, is_streaming=False))

    return make


def metadata(*topics, **errors):
    return {"topics": {info.name: info for info in topics}, "errors": errors}


def leaderless(name):
    return TopicInfo(name, ZERO_UUID, False, (PartitionInfo(0, -1, 0),))


def test_metadata_are_requested_for_the_topics_and_never_create_them(scripted):
    cluster = scripted(metadata(topic("a", 1), topic("b", 1)))
    assert cluster.partitions().missing == []
    network = cluster._network
    assert network.calls == [({"a", "b"}, False), "start", "request_update", ("wake_for", 0)]
    assert not network.metadata.allow_creation
    cluster.close()
    assert network.calls[-1] == "close"
    assert scripted(subscribePattern="a.*")._network.calls[0] == (set(), True)


@pytest.mark.parametrize(
    "incomplete",
    [
        metadata(topic("b", 1), a=Error.LEADER_NOT_AVAILABLE),
        metadata(topic("b", 1), leaderless("a")),
    ],
)
def test_metadata_are_complete_once_all_partitions_have_leaders(scripted, incomplete):
    complete = metadata(topic("a", 1), topic("b", 1))
    assert len(scripted(incomplete, complete).partitions().partitions) == 2
    with pytest.raises(TimeoutError, match=r"^No metadata of the topics within 60 s\.$"):
        scripted(incomplete).partitions()


def test_partitions_that_the_options_do_not_choose_may_lack_leaders(scripted):
    found = scripted(metadata(topic("a", 1), leaderless("other")), subscribePattern="a.*").partitions()
    assert found.partitions == [TopicPartition("a", 0)]
    with pytest.raises(TimeoutError):
        scripted(metadata(topic("a", 1), leaderless("a2")), subscribePattern="a.*").partitions()
    half = TopicInfo("a", ZERO_UUID, False, (PartitionInfo(0, 1, 0), PartitionInfo(1, -1, 0)))
    assert len(scripted(metadata(half), assign='{"a": [0]}').partitions().partitions) == 1
    with pytest.raises(TimeoutError):
        scripted(metadata(half), assign='{"a": [0, 1]}').partitions()


def test_a_topic_that_does_not_exist_is_missing_and_other_errors_are_raised(scripted):
    assert scripted(metadata(topic("b", 1), a=Error.UNKNOWN_TOPIC_OR_PARTITION)).partitions().missing == ["a"]
    with pytest.raises(ApiError, match="Topic a: "):
        scripted(metadata(topic("b", 1), a=Error.TOPIC_AUTHORIZATION_FAILED)).partitions()
    of_others = metadata(topic("a", 1), topic("b", 1), c=Error.LEADER_NOT_AVAILABLE, d=Error.INVALID_TOPIC_EXCEPTION)
    assert scripted(of_others).partitions().missing == []


def test_offsets_are_looked_up_with_the_isolation_level(scripted, monkeypatch):
    calls = []

    def look_up_all(network, wanted, isolation_level, timeout_s):
        calls.append((dict(wanted), isolation_level, timeout_s))
        return {each: None if each.partition else OffsetAndTimestamp(7, -1, 0) for each in wanted}

    monkeypatch.setattr(source_cluster, "look_up_all", look_up_all)
    a0, a1 = TopicPartition("a", 0), TopicPartition("a", 1)
    cluster = scripted()
    assert cluster.earliest([a0, a1]) == {a0: 7, a1: 0}
    assert cluster.latest([a0, a1]) == {a0: 7, a1: 0}
    assert cluster.look_up({a0: 1234, a1: 1234}) == {a0: 7, a1: None}
    assert cluster.look_up({}) == {}
    committed = scripted(**{"kafka.isolation.level": "read_committed", "kafka.default.api.timeout.ms": "1500"})
    committed.latest([a0])
    assert calls == [
        ({a0: -2, a1: -2}, 0, 60.0),
        ({a0: -1, a1: -1}, 0, 60.0),
        ({a0: 1234, a1: 1234}, 0, 60.0),
        ({a0: -1}, 1, 1.5),
    ]


def test_a_question_is_repeated_after_a_pause(cluster, monkeypatch):
    pauses = []
    monkeypatch.setattr(source_cluster.time, "sleep", pauses.append)
    cluster(UNAVAILABLE, [topic("a", 1)], **{"fetchOffset.retryIntervalMs": "250"}).partitions()
    assert pauses == [0.25]
