"""Fetchers as roles change, over scripted connections, with a clock that only the test advances."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import Error
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.protocol.api import ApiKey, decode_request_header, response_header_version
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.header import ResponseHeader
from kafkapy.replica.fetcher.assignment import fetcher_index
from kafkapy.replica.fetcher.fetch_connection import PATIENCE_MS, FetchPorts
from kafkapy.replica.fetcher.fetcher_manager import ReplicaFetcherManager
from kafkapy.replica.fetcher.leader_fetcher import FIRST_RETRY_MS, URGENT_RETRIES
from kafkapy.replica.fetcher.settings import FetchSettings
from kafkapy.types import TopicPartition
from tests.harness.log import LogHarness, batch, with_base_offset
from tests.mock_clock import MockClock
from tests.mock_scheduler import MockScheduler

NODE_ID = 2
TOPIC_ID = b"t" * 16


class ScriptedConnection:
    """A connection whose other end is the test."""

    def __init__(self, on_response, on_closed):
        self.sent = []
        self.close_errno = 0
        self.reason = None
        self._on_response = on_response
        self._on_closed = on_closed

    def send(self, chunks):
        self.sent.append(b"".join(bytes(chunk) for chunk in chunks))

    def close(self, reason):
        if self.reason is None:
            self.reason = reason
            self._on_closed(self)

    def describe_close(self):
        return self.reason

    def end(self, number):
        self.close_errno = number
        self.close("broken")

    def last_request(self):
        """Returns the version and the message of the last request."""
        header, position = decode_request_header(self.sent[-1])
        version = header.request_api_version
        assert header.request_api_key == ApiKey.FETCH
        return version, FetchRequest.decode(self.sent[-1], version, position)

    def respond(self, *, session_id=5, correlation_id=None, **partitions):
        """Responds to the last request; `p0=PartitionData`."""
        header, _ = decode_request_header(self.sent[-1])
        version = header.request_api_version
        topics = [FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(partitions.values()))]
        body = FetchResponse(session_id=session_id, responses=topics if partitions else []).encode(version)
        number = header.correlation_id if correlation_id is None else correlation_id
        head = ResponseHeader(correlation_id=number).encode(response_header_version(ApiKey.FETCH, version))
        self._on_response(SimpleNamespace(payload=memoryview(head + body)))


class Harness:
    def __init__(self, root, *, fetchers=1, sasl_mechanism=lambda host: None):
        self.clock = MockClock()
        self.scheduler = MockScheduler(self.clock)
        self.logs = LogHarness(root)
        self.config = {
            "process.roles": "broker,controller",
            "node.id": str(NODE_ID),
            "num.replica.fetchers": str(fetchers),
        }
        self.endpoints = {1: ("one", 9092), 3: ("three", 9092)}
        self.connections = []
        self.refusal = None
        self.attempts = []
        self.advanced = []
        self.given_up = set()
        ports = FetchPorts(
            connect=self._connect,
            schedule=self.scheduler.schedule,
            monotonic_ms=self.clock.monotonic_ms,
            leader_endpoint=self.endpoints.get,
            broker_epoch=lambda: 77,
            metadata_version=lambda: 30,
            on_high_watermarks=self.advanced.extend,
            on_truncated=lambda log: None,
            sasl_mechanism=sasl_mechanism,
        )
        self.settings = FetchSettings.from_config(BrokerConfig(self.config))
        self.manager = ReplicaFetcherManager(
            self.settings, ports, lambda partition: partition.topic_partition not in self.given_up
        )
        self.partitions = {}

    def _connect(self, host, port, *, attempt, max_response_bytes, on_opened, on_response, on_closed):
        self.attempts.append((host, attempt))
        if self.refusal is not None:
            on_opened(self.refusal)
            return
        self.connections.append(ScriptedConnection(on_response, on_closed))
        on_opened(self.connections[-1])

    def partition(self, number=0, *, leader=1, leader_epoch=0):
        known = self.partitions.get(number)
        if known is None:
            log = self.logs.log(name=f"t{number}")
            log.append_as_leader(batch(), 0)
            known = self.partitions[number] = SimpleNamespace(
                topic_partition=TopicPartition("t", number), topic_id=TOPIC_ID, log=log, follower_throttle=None
            )
        known.leader_id, known.leader_epoch = leader, leader_epoch
        return known

    def follow(self, *numbers, **fields):
        self.manager.on_roles([], [self.partition(number, **fields) for number in numbers])


@pytest.fixture
def harness(tmp_path):
    return Harness(tmp_path)


def positions(connection):
    _, request = connection.last_request()
    return {asked.partition: asked.fetch_offset for topic in request.topics for asked in topic.partitions}


def test_following_a_leader_sends_a_fetch_with_the_brokers_epoch(harness):
    harness.follow(0, 1)
    (connection,) = harness.connections
    version, request = connection.last_request()
    assert version == 18
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (NODE_ID, 77)
    assert positions(connection) == {0: 1, 1: 1}
    connection.respond(p0=FetchResponse.PartitionData(partition_index=0, high_watermark=1, records=b""))
    assert harness.advanced == [TopicPartition("t", 0)]
    assert len(connection.sent) == 2


def test_one_request_is_in_flight_however_often_roles_change(harness):
    harness.follow(0)
    harness.follow(1)
    harness.follow(2)
    (connection,) = harness.connections
    assert len(connection.sent) == 1
    connection.respond()
    assert positions(connection) == {1: 1, 2: 1}


def test_a_new_leader_ends_the_fetching_from_the_old_one(harness):
    harness.follow(0, 1)
    harness.follow(0, leader=3, leader_epoch=1)
    old, new = harness.connections
    assert positions(new) == {0: 1}
    old.respond()
    _, request = old.last_request()
    assert [forgotten.partitions for forgotten in request.forgotten_topics_data] == [[0]]
    harness.follow(1, leader=3, leader_epoch=1)
    assert old.reason == "no partition is fetched over it"
    new.respond()
    assert positions(new) == {1: 1}


def test_the_same_leader_epoch_does_not_restart_a_fetcher(harness):
    harness.follow(0)
    state = next(iter(harness.manager.fetchers)).fetcher.partitions[TopicPartition("t", 0)]
    harness.follow(0)
    assert next(iter(harness.manager.fetchers)).fetcher.partitions[TopicPartition("t", 0)] is state
    harness.follow(0, leader_epoch=1)
    assert next(iter(harness.manager.fetchers)).fetcher.partitions[TopicPartition("t", 0)] is not state


@pytest.mark.parametrize("change", ["leads", "no leader", "unknown leader", "given up"])
def test_a_partition_without_another_leader_is_not_fetched(harness, change):
    harness.follow(0)
    partition = harness.partitions[0]
    if change == "leads":
        harness.manager.on_roles([partition], [])
    elif change == "no leader":
        harness.follow(0, leader=NO_LEADER, leader_epoch=1)
    elif change == "unknown leader":
        harness.follow(0, leader=9, leader_epoch=1)
    else:
        harness.given_up.add(partition.topic_partition)
        harness.follow(0)
    assert harness.manager.fetchers == ()
    assert not list(harness.manager.partitions)
    assert harness.connections[0].reason is not None
    assert harness.scheduler.pending() == 0


def test_partitions_are_divided_among_the_fetchers_of_a_leader(tmp_path):
    harness = Harness(tmp_path, fetchers=3)
    harness.follow(*range(6))
    by_fetcher = [set(positions(connection)) for connection in harness.connections]
    expected = {fetcher_index(TopicPartition("t", number), 3) for number in range(6)}
    assert len(by_fetcher) == len(expected)
    for numbers in by_fetcher:
        assert len({fetcher_index(TopicPartition("t", number), 3) for number in numbers}) == 1


def test_a_changed_number_of_fetchers_moves_their_partitions(harness):
    harness.follow(*range(6))
    harness.manager.reconfigure(BrokerConfig(harness.config))
    assert len(harness.connections) == 1
    harness.manager.reconfigure(BrokerConfig({**harness.config, "num.replica.fetchers": "2"}))
    assert harness.connections[0].reason is not None
    assert set(positions(harness.connections[1])) | set(positions(harness.connections[2])) == set(range(6))


def test_a_refused_connection_is_opened_again_after_the_back_off(harness):
    harness.refusal = OSError(111, "Connection refused")
    harness.follow(0)
    harness.scheduler.advance(999)
    assert harness.attempts == [("one", 0)]
    harness.scheduler.advance(1)
    assert harness.attempts == [("one", 0), ("one", 1)]
    harness.refusal = None
    harness.scheduler.advance(1000)
    assert positions(harness.connections[0]) == {0: 1}


def test_a_lost_connection_is_opened_again_and_the_session_begins_anew(harness):
    harness.follow(0)
    harness.connections[0].respond()
    harness.connections[0].end(104)
    harness.scheduler.advance(1000)
    _, request = harness.connections[1].last_request()
    assert (request.session_id, request.session_epoch) == (5, 0)
    assert positions(harness.connections[1]) == {0: 1}


def test_a_leader_that_does_not_respond_is_connected_to_again(harness):
    harness.follow(0)
    harness.connections[0].respond()
    harness.scheduler.advance(harness.settings.request_timeout_ms - 1)
    assert harness.connections[0].reason is None
    harness.scheduler.advance(1)
    assert harness.connections[0].reason == "the leader did not respond in time"
    harness.scheduler.advance(1000)
    assert len(harness.connections) == 2


def test_a_response_to_another_request_closes_the_connection(harness):
    harness.follow(0)
    harness.connections[0].respond(correlation_id=99)
    assert harness.connections[0].reason == "response 99 instead of 1"
    harness.scheduler.advance(1000)
    assert len(harness.connections) == 2


def test_a_back_off_of_nothing_still_leaves_the_thread(tmp_path):
    harness = Harness(tmp_path)
    harness.refusal = OSError(111, "Connection refused")
    harness.manager.reconfigure(BrokerConfig({**harness.config, "replica.fetch.backoff.ms": "0"}))
    harness.follow(0)
    assert len(harness.attempts) == 1
    assert harness.scheduler.pending() == 1


def test_a_closed_manager_does_nothing_later(harness):
    harness.follow(0, 1)
    connection = harness.connections[0]
    harness.manager.close()
    assert connection.reason is not None
    harness.scheduler.advance(100_000)
    assert len(harness.attempts) == 1


def test_a_broker_that_follows_nobody_does_not_import_the_fetchers():
    program = """if True:
        import sys
        import kafkapy.broker
        loaded = [name for name in sys.modules if "fetcher" in name or "follower_append." in name or "outgoing" in name]
        assert "kafkapy.replica.replica_manager" in sys.modules
        assert not loaded, loaded
        assert "kafkapy._core.gate.follower_append" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_held_fetch_is_given_up_for_partitions_that_were_added(harness):
    harness.follow(0)
    harness.connections[0].respond()
    harness.follow(1)
    harness.scheduler.advance(PATIENCE_MS - 1)
    assert len(harness.connections) == 1
    harness.scheduler.advance(1)
    old, new = harness.connections
    assert old.reason is not None
    assert positions(new) == {0: 1, 1: 1}
    _, request = new.last_request()
    assert (request.session_id, request.session_epoch) == (5, 0)
    new.respond(session_id=6)
    harness.scheduler.advance(PATIENCE_MS)
    assert len(harness.connections) == 2


def test_a_fetch_that_ends_soon_is_not_given_up(harness):
    harness.follow(0)
    harness.follow(1)
    (connection,) = harness.connections
    connection.respond()
    harness.scheduler.advance(PATIENCE_MS)
    assert positions(connection) == {1: 1}
    assert harness.connections == [connection]


def test_a_released_partition_does_not_end_a_held_fetch(harness):
    harness.follow(0, 1)
    harness.connections[0].respond()
    harness.follow(1, leader=NO_LEADER, leader_epoch=1)
    harness.scheduler.advance(PATIENCE_MS)
    assert len(harness.connections) == 1


def test_a_held_fetch_is_given_up_for_the_first_retries_only(harness):
    harness.follow(0, 1)
    refused = FetchResponse.PartitionData(partition_index=1, error_code=Error.NOT_LEADER_OR_FOLLOWER, records=b"")
    for attempt in range(URGENT_RETRIES + 1):
        assert len(harness.connections) == attempt + 1
        harness.connections[-1].respond(p1=refused)
        assert positions(harness.connections[-1]) in ({}, {0: 1})
        harness.scheduler.advance(FIRST_RETRY_MS << attempt)
    assert len(harness.connections) == URGENT_RETRIES + 1
    assert harness.connections[-1].reason is None


def test_a_fetch_that_was_sent_ahead_is_not_given_up(harness):
    harness.follow(0)
    (connection,) = harness.connections
    records = with_base_offset(batch(), 1)
    connection.respond(p0=FetchResponse.PartitionData(partition_index=0, high_watermark=10, records=records))
    assert positions(connection) == {0: 2}
    harness.scheduler.advance(PATIENCE_MS)
    assert (connection.reason, len(harness.connections)) == (None, 1)
    harness.follow(1)
    harness.scheduler.advance(PATIENCE_MS)
    assert len(harness.connections) == 2
