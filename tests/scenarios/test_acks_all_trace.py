"""The trace of acks_all_trace.txt on the Python path and behind the data gate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.types import TopicPartition
from tests.api_client import ask, request_bytes
from tests.harness.led_partitions import FIRST_EPOCH, FOLLOWERS, LedPartitions
from tests.harness.replica import NODE_ID, ReplicaHarness, broker, partition_image
from tests.reactor_harness import frame
from tests.twin_brokers import PING, BrokerTwin, receive

TRACE = Path(__file__).with_name("acks_all_trace.txt")
LAG_MAX_MS = 30_000
LIMIT_MS = 20_000
ANSWERS = {Error.NONE: "done", Error.REQUEST_TIMED_OUT: "timed-out", Error.NOT_LEADER_OR_FOLLOWER: "moved"}


def stories():
    """Yields (title, [(event, state)]) of the trace."""
    found = []
    for line in TRACE.read_text().splitlines():
        if line.startswith("# "):
            found.append((line[2:], []))
        elif "|" in line:
            event, state = line.split("|")
            found[-1][1].append((event.strip(), state.split()))
    return [story for story in found if story[1]]


class OnThePythonPath:
    """Runs the scenario on a replica manager without compiled gate, with a clock that the test advances."""

    def __init__(self, root) -> None:
        replicas = (NODE_ID, 2, 3)
        self.replicas = replicas
        self.harness = ReplicaHarness(root, brokers=replicas)
        self.harness.put_topic("t", [partition_image(replicas=replicas)])
        for _ in range(3):
            self.harness.append(b"before")
        self.answers = {}
        self.follow(2, 3)
        self.follow(3, 3)

    def produce(self, record):
        self.answers[record] = self.harness.append(b"record", acks=-1, timeout_ms=LIMIT_MS)

    def follow(self, follower, offset):
        self.harness.fetch(offset, replica_id=follower, replica_epoch=100 + follower, log_start_offset=0)

    def pass_the_limit(self):
        self.harness.scheduler.advance(LIMIT_MS)

    def leave(self, follower):
        self.harness.put_brokers(broker(follower, fenced=True))
        isr = tuple(replica for replica in self.replicas if replica != follower)
        self.harness.put_topic("t", [partition_image(replicas=self.replicas, isr=isr, partition_epoch=1)])

    def set_minimum(self, count):
        self.harness.partition().min_insync_replicas = count

    def move(self, leader):
        image = partition_image(replicas=self.replicas, leader=leader, leader_epoch=1, partition_epoch=1)
        self.harness.put_topic("t", [image])

    def state(self):
        log = self.harness.partition().log
        return [str(log.log_end_offset), str(log.high_watermark), *map(self._answer, (3, 4))]

    def _answer(self, record):
        if record not in self.answers:
            return "-"
        return ANSWERS[self.answers[record][0].error] if self.answers[record] else "waits"

    def stop(self):
        pass


class BehindTheGate:
    """A running broker; each record is produced on a connection of its own."""

    PARTITION = TopicPartition("t", 0)
    BEFORE = 1

    def __init__(self, root) -> None:
        self.twin = BrokerTwin(root, gated=True, properties={"replica.lag.time.max.ms": str(LAG_MAX_MS * 100)})
        self.twin.create_topic("t", 1, {})
        self.led = LedPartitions(self.twin)
        self.led.run("register", dict.fromkeys(FOLLOWERS, FIRST_EPOCH))
        self.led.run("change", self.PARTITION, True)
        for _ in range(3):
            self.twin.wake_up({self.BEFORE: [produce_frame(acks=1)]})
        self.answers = {}
        self.follow(2, 3)
        self.follow(3, 3)

    def produce(self, record):
        self.answers[record] = "waits"
        self.twin.send({record: [produce_frame(acks=-1)]})

    def follow(self, follower, offset):
        asked = FetchRequest.FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=0)
        request = FetchRequest(
            replica_id=FOLLOWERS[follower - 2],
            max_wait_ms=0,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic="t", partitions=[asked])],
        )
        response = ask(self.twin.connection(10 + follower), ApiKey.FETCH, 12, request, FetchResponse)
        assert response.responses[0].partitions[0].error_code == 0

    def pass_the_limit(self):
        self.led.run("expire_awaited")

    def leave(self, follower):
        self.led.run("register", dict.fromkeys(FOLLOWERS, FIRST_EPOCH), {FOLLOWERS[follower - 2]})
        self.led.run("change", self.PARTITION, True, (FOLLOWERS[3 - follower],))

    def set_minimum(self, count):
        self.led.run("set_min_insync_replicas", self.PARTITION, count)

    def move(self, leader):
        self.led.run("change", self.PARTITION, False)

    def state(self):
        self.twin.wake_up({self.BEFORE: [PING]})
        for record in self.twin.answered([record for record in self.answers if self.answers[record] == "waits"]):
            response = ProduceResponse.decode(receive(self.twin.connection(record)), 9, 5)
            self.answers[record] = ANSWERS[response.responses[0].partition_responses[0].error_code]
        log = self.led.manager.partitions[self.PARTITION].log
        answers = [self.answers.get(record, "-") for record in (3, 4)]
        return [str(log.log_end_offset), str(log.high_watermark), *answers]

    def stop(self):
        assert self.twin.broker.parts.gate.counters()["produces_awaited"] == len(self.answers)
        self.twin.stop()


def produce_frame(*, acks):
    builder = RecordBatchBuilder()
    builder.append(1_700_000_000_000, None, b"record")
    data = [ProduceRequest.PartitionProduceData(index=0, records=builder.build())]
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=data)
    request = ProduceRequest(acks=acks, timeout_ms=LIMIT_MS, topic_data=[topic])
    return frame(request_bytes(ApiKey.PRODUCE, 9, request))


def act(leader, event):
    """Carries out an event of the trace."""
    for pattern, method in (
        (r"produce (\d)", leader.produce),
        (r"follower (\d) fetches from (\d)", leader.follow),
        (r"the limit passes", leader.pass_the_limit),
        (r"follower (\d) leaves the ISR", leader.leave),
        (r"min.insync.replicas is (\d)", leader.set_minimum),
        (r"follower (\d) becomes leader", leader.move),
    ):
        found = re.fullmatch(pattern, event)
        if found:
            method(*map(int, found.groups()))
            return
    raise AssertionError(event)


@pytest.mark.parametrize("place", [OnThePythonPath, BehindTheGate])
@pytest.mark.parametrize(("title", "events"), stories())
def test_records_3_and_4(tmp_path, place, title, events):
    leader = place(tmp_path)
    for event, expected in events:
        act(leader, event)
        assert leader.state() == expected, (title, event)
    leader.stop()
