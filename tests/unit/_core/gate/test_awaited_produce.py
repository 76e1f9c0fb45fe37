"""Produce requests with acks=all that wait in the gate: their order, deadlines, errors and lost connections."""

from __future__ import annotations

import time

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.readable import is_readable
from kafkapy.types import TopicPartition
from tests.api_client import ask, request_bytes
from tests.harness.led_partitions import FIRST_EPOCH, FOLLOWERS, LedPartitions
from tests.reactor_harness import frame
from tests.twin_brokers import PING, BrokerTwin, receive

PRODUCER, OTHER, PREPARING = 1, 2, 3
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]
LONG_MS = 600_000


class Cluster:
    """A broker that leads two partitions with followers that the test plays; each log has two records."""

    def __init__(self, root) -> None:
        self.twin = BrokerTwin(root, gated=True, properties={"replica.lag.time.max.ms": str(LONG_MS)})
        self.twin.create_topic("t", 2, {})
        self.gate = self.twin.broker.parts.gate
        self.led = LedPartitions(self.twin)
        self.led.run("register", dict.fromkeys(FOLLOWERS, FIRST_EPOCH))
        for partition in PARTITIONS:
            self.led.run("change", partition, True)
            for _ in range(2):  # Python serves the first batches of a segment
                self.twin.wake_up({PREPARING: [produce_frame(0, acks=1, partitions=[partition.partition])]})
        self.follow(2, partitions=(0, 1))

    def follow(self, offset: int, *, followers=FOLLOWERS, partitions=(0,)) -> None:
        """Fetches as the followers from this offset, which acknowledges everything below it."""
        asked = [
            FetchRequest.FetchPartition(
                partition=index, fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=0
            )
            for index in partitions
        ]
        for replica_id in followers:
            request = FetchRequest(
                replica_id=replica_id,
                max_wait_ms=0,
                max_bytes=1 << 20,
                session_epoch=-1,
                topics=[FetchRequest.FetchTopic(topic="t", partitions=asked)],
            )
            response = ask(self.twin.connection(replica_id), ApiKey.FETCH, 12, request, FetchResponse)
            assert {data.error_code for data in response.responses[0].partitions} == {0}

    def send(self, *frames: bytes, number: int = PRODUCER) -> None:
        self.twin.send({number: list(frames)})
        self.settle()

    def settle(self) -> None:
        """Waits until the broker has read everything that was sent."""
        self.twin.wake_up({PREPARING: [PING]})

    def answers(self, number: int = PRODUCER) -> list[int]:
        """Returns the correlation ids of the answers that have arrived on a connection."""
        self.settle()
        found = []
        while is_readable(self.twin.connection(number)):
            answer = receive(self.twin.connection(number))
            if not answer:
                break
            found.append(int.from_bytes(answer[:4], "big"))
        return found

    def produce_count(self) -> int:
        """Returns the number of produce requests that were answered."""
        self.settle()
        return next(meter[1] for meter in self.twin.broker.reactor.request_meters() if meter[0] == ApiKey.PRODUCE)

    def result(self, version: int = 9) -> list[ProduceResponse.PartitionProduceResponse]:
        """Returns the partitions of the next answer."""
        answer = receive(self.twin.connection(PRODUCER))
        response = ProduceResponse.decode(answer, version, 4 + (version >= 9))
        return [partition for topic in response.responses for partition in topic.partition_responses]


def produce_frame(correlation_id: int, *, acks=-1, partitions=(0,), timeout_ms=LONG_MS, version=9) -> bytes:
    builder = RecordBatchBuilder()
    builder.append(1_700_000_000_000, None, b"value")
    data = [ProduceRequest.PartitionProduceData(index=index, records=builder.build()) for index in partitions]
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=data)
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])
    return frame(request_bytes(ApiKey.PRODUCE, version, request, correlation_id=correlation_id))


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.twin.stop()


def test_requests_sent_ahead_are_answered_in_order_as_the_high_watermark_passes_them(cluster):
    cluster.send(*map(produce_frame, range(4)))
    assert cluster.gate.awaited_count == 4
    assert cluster.answers() == []
    cluster.follow(4, followers=FOLLOWERS[:1])
    assert cluster.answers() == []
    cluster.follow(4, followers=FOLLOWERS[1:])
    assert cluster.answers() == [0, 1]
    cluster.follow(6)
    assert cluster.answers() == [2, 3]
    assert cluster.gate.awaited_count == 0
    assert cluster.led.manager.delayed_operations.produce.delayed_count == 0


def test_a_request_waits_for_all_of_its_partitions(cluster):
    cluster.send(produce_frame(1, partitions=[0, 1]))
    cluster.follow(3)
    assert cluster.answers() == []
    cluster.follow(3, partitions=[1])
    assert [(each.error_code, each.base_offset) for each in cluster.result()] == [(0, 2), (0, 2)]


def test_answers_that_need_no_wait_stay_behind_those_that_do(cluster):
    cluster.send(produce_frame(1), produce_frame(2, acks=1), produce_frame(3, partitions=[1]))
    cluster.follow(3, partitions=[1])
    assert cluster.answers() == []
    cluster.follow(4)
    assert cluster.answers() == [1, 2, 3]


def test_a_request_for_python_waits_behind_them(cluster):
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    fetch = FetchRequest(session_epoch=-1, topics=[FetchRequest.FetchTopic(topic="t", partitions=[asked])])
    fetch_frame = frame(request_bytes(ApiKey.FETCH, 12, fetch, correlation_id=3))
    cluster.send(produce_frame(1), PING, produce_frame(2), fetch_frame)
    assert cluster.gate.awaited_count == 1
    assert cluster.answers() == []
    cluster.follow(3)
    ping_id = int.from_bytes(PING[8:12], "big")
    assert cluster.answers() == [1, ping_id]
    cluster.follow(4)
    assert cluster.answers() == [2, 3]


def test_more_requests_than_the_limit_are_read_when_others_are_answered(cluster):
    count = 300
    cluster.send(*map(produce_frame, range(count)))
    offset, answered = 2, []
    while len(answered) < count:
        offset += 1
        cluster.follow(min(offset, cluster.led.manager.partitions[PARTITIONS[0]].log.log_end_offset), partitions=[0])
        answered += cluster.answers()
        assert offset < 2 * count
    assert answered == list(range(count))


def test_at_the_deadline_the_answer_is_a_timeout_and_the_records_stay(cluster):
    counts = cluster.twin.broker.parts.services.request_errors
    cluster.send(produce_frame(1, timeout_ms=30), produce_frame(2))
    (late,) = cluster.result()
    assert (late.error_code, late.base_offset) == (Error.REQUEST_TIMED_OUT, 2)
    assert cluster.answers() == []
    assert counts.counts()[ApiKey.PRODUCE, Error.REQUEST_TIMED_OUT] == 1
    cluster.follow(4)
    assert [(each.error_code, each.base_offset) for each in cluster.result()] == [(0, 3)]
    assert cluster.gate.counters()["produces_expired"] == 1
    assert cluster.led.manager.gated_produces() == (0, 1)


def test_an_earlier_deadline_comes_first(cluster):
    cluster.send(produce_frame(1, timeout_ms=LONG_MS), number=OTHER)
    cluster.send(produce_frame(2, timeout_ms=30))
    assert [each.error_code for each in cluster.result()] == [Error.REQUEST_TIMED_OUT]
    assert cluster.gate.awaited_count == 1


@pytest.mark.parametrize(("version", "leader"), [(9, -1), (10, FOLLOWERS[0])])
def test_a_leader_that_becomes_a_follower_names_the_new_leader(cluster, version, leader):
    cluster.send(produce_frame(1, partitions=[0, 1], version=version), produce_frame(2, partitions=[1]))
    cluster.led.run("change", PARTITIONS[0], False)
    assert cluster.answers() == []  # the other partition still waits
    cluster.follow(4, partitions=[1])
    lost, kept = cluster.result(version)
    assert (lost.error_code, lost.base_offset, lost.current_leader.leader_id) == (6, 2, leader)
    assert (kept.error_code, kept.base_offset, kept.current_leader.leader_id) == (0, 2, -1)
    assert [each.error_code for each in cluster.result()] == [0]


def test_a_new_epoch_of_the_same_leader_does_not_end_the_wait(cluster):
    cluster.send(produce_frame(1))
    cluster.led.run("change", PARTITIONS[0], True)
    assert cluster.answers() == []
    cluster.follow(3)
    assert cluster.answers() == [1]


def test_a_smaller_isr_completes_the_wait(cluster):
    cluster.send(produce_frame(1))
    cluster.follow(3, followers=FOLLOWERS[:1], partitions=[0])
    # Otherwise the high watermark waits for a replica that may come back at any moment.
    cluster.led.run("register", dict.fromkeys(FOLLOWERS, FIRST_EPOCH), set(FOLLOWERS[1:]))
    cluster.led.run("shrink", PARTITIONS[0])
    assert cluster.answers() == []
    cluster.led.run("answer_proposal", Error.NONE)
    assert cluster.answers() == [1]


def test_below_min_insync_replicas_nothing_is_appended(cluster):
    cluster.led.run("set_min_insync_replicas", PARTITIONS[0], 2)
    cluster.led.run("change", PARTITIONS[0], True, ())
    cluster.send(produce_frame(1))
    (refused,) = cluster.result()
    assert (refused.error_code, refused.base_offset) == (Error.NOT_ENOUGH_REPLICAS, -1)
    cluster.send(produce_frame(2, acks=1))
    assert [(each.error_code, each.base_offset) for each in cluster.result()] == [(0, 2)]


def test_the_high_watermark_waits_below_min_insync_replicas(cluster):
    cluster.led.run("set_min_insync_replicas", PARTITIONS[0], 2)
    cluster.send(produce_frame(1))
    cluster.led.run("change", PARTITIONS[0], True, ())
    cluster.follow(3)
    assert cluster.answers() == []
    cluster.led.run("answer_proposal", Error.NONE)  # of the first follower that came back
    assert cluster.answers() == [1]


def test_a_lost_connection_leaves_nothing_behind(cluster):
    cluster.send(produce_frame(1), produce_frame(2), PING)
    cluster.send(produce_frame(3), number=OTHER)
    cluster.twin.connections.pop(PRODUCER).close()
    cluster.settle()
    cluster.follow(5)
    assert cluster.answers(OTHER) == [3]
    assert cluster.gate.awaited_count == 0


def test_a_lost_connection_is_forgotten_at_the_deadline(cluster):
    cluster.send(produce_frame(1, timeout_ms=50), produce_frame(2, acks=1))
    cluster.twin.connections.pop(PRODUCER).close()
    deadline = time.monotonic() + 20
    while cluster.gate.awaited_count and time.monotonic() < deadline:
        cluster.settle()
    assert cluster.gate.awaited_count == 0


def test_a_deleted_topic_ends_the_wait(cluster):
    cluster.send(produce_frame(1))
    cluster.twin.delete_topic("t")
    assert [each.error_code for each in cluster.result()] == [Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert cluster.gate.awaited_count == 0


def test_requests_are_counted_when_they_are_answered(cluster):
    before = cluster.produce_count()
    cluster.send(produce_frame(1), produce_frame(2))
    assert cluster.produce_count() == before
    cluster.follow(4)
    assert cluster.answers() == [1, 2]
    assert cluster.produce_count() == before + 2


def test_a_stopping_broker_answers_those_that_wait(tmp_path):
    cluster = Cluster(tmp_path)
    cluster.send(produce_frame(1))
    connection = cluster.twin.connections.pop(PRODUCER)
    cluster.twin.stop()
    answer = receive(connection)
    partition = ProduceResponse.decode(answer, 9, 5).responses[0].partition_responses[0]
    assert partition.error_code in (Error.NOT_LEADER_OR_FOLLOWER, Error.REQUEST_TIMED_OUT)
    assert partition.base_offset == 2
    connection.close()
