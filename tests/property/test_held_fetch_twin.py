"""Waiting fetches of the gate (HeldFetch) and of Python (DelayedFetch) complete at the same events with the same bytes.

After each event both brokers have answered the same connections. The result does not depend on the clock: in one test
no fetch reaches its deadline, and in the other all fetches wait until their deadline.
"""

from __future__ import annotations

import random

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.twin_brokers import TwinBrokers

PARTITIONS = [("a", 0), ("a", 1), ("b", 0), ("rolls", 0)]
CONSUMERS = range(1, 9)
PRODUCER = 20
EVENTS = 250
LONG_MS = 600_000
NOW_MS = 1_700_000_000_000
PROPERTIES = {"transaction.partition.verification.enable": "false"}

TwinFetch = tuple[ApiKey, int, FetchRequest]


class Consumers:
    """The consumers: their waiting fetches, the ends of the partitions, and the epochs of their sessions."""

    def __init__(self, twins: TwinBrokers, chance: random.Random) -> None:
        self.twins = twins
        self.chance = chance
        self.waiting: dict[int, TwinFetch] = {}
        self.ends = dict.fromkeys(PARTITIONS, 0)
        self.session_epochs: dict[int, int] = {}
        self.small_limit = 100  # a value of partition_max_bytes that is smaller than a batch
        self.assigned = {number: chance.sample(PARTITIONS, chance.choice([1, 1, 2, 4])) for number in CONSUMERS}

    def wait(self, max_wait_ms: int = LONG_MS) -> None:
        """Sends a fetch for each consumer that has no waiting fetch."""
        asked = {number: self.fetch(number, max_wait_ms) for number in CONSUMERS if number not in self.waiting}
        self.waiting |= asked
        self.twins.send(asked)

    def fetch(self, number: int, max_wait_ms: int) -> TwinFetch:
        chance = self.chance
        with_session = number % 2 == 0
        version = 12 if number % 4 < 2 else 16
        topics = []
        for name in sorted({name for name, _ in self.assigned[number]}):
            asked = [
                FetchRequest.FetchPartition(
                    partition=index,
                    fetch_offset=max(0, self.ends[name, index] - chance.choice([0, 0, 0, 1])),
                    partition_max_bytes=chance.choice([1 << 20, 1 << 20, self.small_limit]),
                )
                for topic, index in self.assigned[number]
                if topic == name
            ]
            topics.append(FetchRequest.FetchTopic(topic=name, partitions=asked))
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=chance.choice([1, 1, 1, 150, 2000]),
            max_bytes=chance.choice([1 << 20, 4000]),
            isolation_level=chance.choice([0, 1]),
            session_id=number if self.session_epochs.get(number) else 0,
            session_epoch=self.session_epochs.get(number, 0) if with_session else -1,
            topics=topics,
        )
        return ApiKey.FETCH, version, request

    def take_answers(self) -> int:
        answered = self.twins.answered(self.waiting)
        for number in answered:
            _, version, request = asked = self.waiting.pop(number)
            response = FetchResponse.decode(self.twins.answer_to(number, asked), version, 5)
            if response.error_code or not response.session_id:
                self.session_epochs.pop(number, None)
            else:
                self.session_epochs[number] = request.session_epoch + 1
        return len(answered)


class Producer:
    """Appends to the partitions, sometimes in a transaction, and sometimes so much that a segment is rolled."""

    def __init__(self, twins: TwinBrokers, consumers: Consumers) -> None:
        self.twins = twins
        self.consumers = consumers
        self.chance = consumers.chance
        self.sequences: dict[tuple[str, int], int] = {}

    def produce(self, partition: tuple[str, int], *, size: int | None = None, is_transactional: bool = False) -> None:
        keywords: dict[str, object] = {}
        if is_transactional:
            sequence = self.sequences.get(partition, 0)
            keywords = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
            self.sequences[partition] = sequence + 1
        builder = RecordBatchBuilder(**keywords)
        builder.append(NOW_MS, None, bytes(size or self.chance.choice([5, 60, 400])))
        data = ProduceRequest.PartitionProduceData(index=partition[1], records=builder.build())
        topics = [ProduceRequest.TopicProduceData(name=partition[0], partition_data=[data])]
        request = ProduceRequest(
            transactional_id="t" if is_transactional else None, acks=1, timeout_ms=1000, topic_data=topics
        )
        self.twins.wake_up({PRODUCER: (ApiKey.PRODUCE, 9, request)})
        self.consumers.ends[partition] += 1


@pytest.fixture
def twins(tmp_path):
    twins = TwinBrokers(tmp_path, PROPERTIES)
    twins.create_topic("a", 2, {})
    twins.create_topic("b", 1, {})
    twins.create_topic("rolls", 1, {"segment.bytes": "1048576"})
    yield twins
    twins.stop_and_compare()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("seed", "with_transactions"), [(1, False), (2, False), (3, True), (4, True)])
def test_the_same_events_wake_the_same_fetches(twins, seed, with_transactions):
    chance = random.Random(seed)
    consumers = Consumers(twins, chance)
    if with_transactions:
        # If the gate declines a held fetch, Python reads it as a new fetch and counts a first batch above the limit in
        # full.
        consumers.small_limit = 1 << 20
    producer = Producer(twins, consumers)
    for partition in PARTITIONS * 2:  # Python serves the first batches of a segment
        producer.produce(partition)
    woken = 0
    for event in range(EVENTS):
        consumers.wait()
        size = 300_000 if chance.random() < 0.1 else None
        producer.produce(chance.choice(PARTITIONS), size=size, is_transactional=with_transactions and event % 9 == 8)
        woken += consumers.take_answers()
    assert woken > EVENTS // 2
    held = twins.gated.broker.parts.replica_manager.delayed_operations.fetch
    assert held.delayed_count == len(consumers.waiting)
    counters = twins.gate_counters()
    assert counters["fetches_answered"] > EVENTS // (50 if with_transactions else 2)
    assert counters["session_fetches_answered"] > EVENTS // (100 if with_transactions else 10)
    assert twins.topic_counters(twins.gated) == twins.topic_counters(twins.plain)
    twins.delete_topic("a")
    gone = {number for number in consumers.waiting if any(name == "a" for name, _ in consumers.assigned[number])}
    assert gone == twins.answered(consumers.waiting)
    for number in gone:  # the two paths may return different errors for a missing topic
        version = consumers.waiting[number][1]
        answer = FetchResponse.decode(twins.gated.answer(number), version, 5)
        errors = [data.error_code for topic in answer.responses for data in topic.partitions]
        assert answer.error_code or any(errors), answer


def test_deadlines_bring_the_same_answers(twins):
    consumers = Consumers(twins, random.Random(4))
    producer = Producer(twins, consumers)
    for partition in PARTITIONS * 2:
        producer.produce(partition)
    for _ in range(5):
        consumers.wait(max_wait_ms=60)
        for number, asked in list(consumers.waiting.items()):
            response = FetchResponse.decode(twins.answer_to(number, asked), asked[1], 5)
            consumers.session_epochs[number] = asked[2].session_epoch + 1 if response.session_id else 0
        consumers.waiting.clear()
    assert twins.gate_counters()["session_fetches_answered"] > 10
    assert twins.gated.broker.parts.replica_manager.delayed_operations.fetch.expired_count > 10
