"""The epoch of a producer without transactions: when it is raised, and which batches keep their sequences."""

from __future__ import annotations

import random

import pytest

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy._core.client.record_accumulator import DeliveryFuture
from kafkapy.client.sequences import LARGEST_EPOCH
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkapy.protocol.messages.produce import ProduceResponse
from tests.harness.client import MemoryBrokers

LOST = "the batch is written, but its response is lost"
DROPPED = "the request is lost"
UNCERTAIN = "the batch is written, but by too few replicas"
A, B = 0, 1


class Partition:
    """A partition that checks the sequences of its batches as a broker does."""

    def __init__(self):
        self.values: list[str] = []
        self.attempts: list[tuple[int, int, int]] = []  # producer id, epoch, base sequence
        self.script: list[str | Error] = []
        self.epochs: dict[int, int] = {}
        self.written: dict[tuple[int, int], list[tuple[int, int]]] = {}  # (id, epoch) -> first and next sequence

    def receive(self, batch):
        """Handles a batch that the producer has sent, by the next entry of the script.

        Returns the error of the response, or None if the producer gets no response.
        """
        sequences = batch.base_sequence, batch.base_sequence + batch.record_count
        self.attempts.append((batch.producer_id, batch.producer_epoch, batch.base_sequence))
        outcome = self.script.pop(0) if self.script else Error.NONE
        if outcome == DROPPED:
            return None
        if isinstance(outcome, Error) and outcome:
            return outcome
        error = self._append(batch, sequences)
        if outcome == UNCERTAIN:
            return Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return None if outcome == LOST else error

    def _append(self, batch, sequences):
        known = self.epochs.get(batch.producer_id)
        written = self.written.setdefault((batch.producer_id, batch.producer_epoch), [])
        if sequences in written:
            return Error.NONE
        if known is not None:
            if batch.producer_epoch < known:
                return Error.INVALID_PRODUCER_EPOCH
            if sequences[0] != (written[-1][1] if written else 0):
                return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.epochs[batch.producer_id] = batch.producer_epoch
        written.append(sequences)
        self.values += [record.value.decode() for record in batch]
        return Error.NONE


class Brokers(MemoryBrokers):
    """Two brokers; the first one leads the partition A, the second one B."""

    def __init__(self):
        super().__init__(node_ids=(1, 2))
        self.add_topic("t", [(1, 0), (2, 0)])
        self.partitions = [Partition(), Partition()]
        self.identities = [(7, 0), (8, 0)]
        self.answers |= {ApiKey.PRODUCE: self._produce, ApiKey.INIT_PRODUCER_ID: self._init}

    def _init(self, request, version):
        producer_id, epoch = self.identities.pop(0)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)

    def _produce(self, request, version):
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        error = self.partitions[data.index].receive(RecordBatch(bytes(data.records)))
        if error is None:
            return None
        answer = ProduceResponse.PartitionProduceResponse(index=data.index, error_code=int(error), base_offset=0)
        told = ProduceResponse.TopicProduceResponse(topic_id=topic.topic_id, partition_responses=[answer])
        return ProduceResponse(responses=[told])


@pytest.fixture
def brokers():
    harness = Brokers()
    yield harness
    harness.close()


def producer_of(brokers, **settings):
    return brokers.producer(
        **{"linger_ms": 0, "batch_size": 1, "request_timeout_ms": 10_000, "delivery_timeout_ms": 40_000, **settings}
    )


def refused(future):
    return future.exception(60).error


def test_a_batch_of_another_partition_keeps_its_epoch_and_sequence(brokers):
    a, b = brokers.partitions
    a.script = [LOST]
    b.script = [Error.MESSAGE_TOO_LARGE]
    with producer_of(brokers) as producer:
        first = producer.send("t", "a0", partition=A)
        assert refused(producer.send("t", "b0", partition=B)) is Error.MESSAGE_TOO_LARGE
        producer.send("t", "b1", partition=B).result(60)
        assert not first.done()  # the other partition does not wait for this one
        second = producer.send("t", "a1", partition=A)
        assert producer.flush(60) and first.exception() is None and second.exception() is None
    assert a.values == ["a0", "a1"] and b.values == ["b1"]
    assert a.attempts == [(7, 0, 0), (7, 0, 0), (7, 1, 0)]
    assert b.attempts == [(7, 0, 0), (7, 1, 0)]


def test_a_batch_of_another_partition_keeps_its_producer_id_when_the_epochs_are_used_up(brokers):
    a, b = brokers.partitions
    brokers.identities[0] = (7, LARGEST_EPOCH - 1)
    a.script = [LOST]
    b.script = [Error.MESSAGE_TOO_LARGE]
    with producer_of(brokers) as producer:
        producer.send("t", "a0", partition=A)
        refused(producer.send("t", "b0", partition=B))
        producer.send("t", "b1", partition=B)
        producer.send("t", "a1", partition=A)
        assert producer.flush(60)
    assert a.values == ["a0", "a1"] and b.values == ["b1"]
    assert a.attempts == [(7, LARGEST_EPOCH - 1, 0)] * 2 + [(8, 0, 0)]


@pytest.mark.parametrize(
    ("outcome", "attempts"),
    [(LOST, [(7, 0, 2), (7, 0, 3)]), (DROPPED, [(7, 0, 2), (7, 1, 0), (7, 1, 1)])],
    ids=["written", "not written"],
)
def test_a_later_batch_shows_whether_one_that_was_given_up_is_written(brokers, outcome, attempts):
    a = brokers.partitions[A]
    with producer_of(brokers) as producer:
        producer.send("t", "a0", partition=A).result(60)
        a.script = [outcome, outcome, DROPPED, DROPPED, DROPPED]
        late = producer.send("t", "a1", partition=A)
        producer.flush(9)
        later = producer.send("t", "a2", partition=A)
        assert late.exception(60) is not None
        last = producer.send("t", "a3", partition=A)
        assert producer.flush(60) and later.exception() is None and last.exception() is None
    written = ["a1"] if outcome == LOST else []
    assert a.values == ["a0", *written, "a2", "a3"]
    assert a.attempts[-len(attempts) :] == attempts


def test_a_batch_after_a_refused_one_is_sent_with_the_next_epoch(brokers):
    a = brokers.partitions[A]
    with producer_of(brokers) as producer:
        producer.send("t", "a0", partition=A).result(60)
        a.script = [Error.MESSAGE_TOO_LARGE]
        futures = producer.send_many("t", ["a1", "a2", "a3"], partition=A)
        assert producer.flush(60)
        assert refused(futures[0]) is Error.MESSAGE_TOO_LARGE
    assert a.values == ["a0", "a2", "a3"]
    assert a.attempts[-2:] == [(7, 1, 0), (7, 1, 1)]


def test_a_refused_batch_does_not_change_the_sequence_of_an_earlier_one(brokers):
    a = brokers.partitions[A]
    with producer_of(brokers) as producer:
        producer.send("t", "a0", partition=A).result(60)
        a.script = [UNCERTAIN, Error.MESSAGE_TOO_LARGE]
        earlier, refusal = producer.send_many("t", ["a1", "a2"], partition=A)
        assert producer.flush(60)
        assert earlier.exception() is None and refused(refusal) is Error.MESSAGE_TOO_LARGE
        producer.send("t", "a3", partition=A).result(60)
    assert a.values == ["a0", "a1", "a3"]
    assert a.attempts == [(7, 0, 0), (7, 0, 1), (7, 0, 2), (7, 0, 1), (7, 1, 0)]


@pytest.mark.parametrize("seed", range(60))
def test_no_record_is_written_twice_or_out_of_order(brokers, seed):
    """Batches of both partitions meet random outcomes; afterwards the producer can write to both again."""
    chance = random.Random(seed)
    batch_size = chance.choice([1, 200])
    outcomes = [LOST, DROPPED, UNCERTAIN, Error.NOT_LEADER_OR_FOLLOWER, Error.TOPIC_AUTHORIZATION_FAILED]
    if batch_size == 1:  # a larger batch would be split, although it may be written already
        outcomes.append(Error.MESSAGE_TOO_LARGE)
    sent: list[list[DeliveryFuture]] = [[], []]
    with producer_of(brokers, batch_size=batch_size) as producer:
        for _ in range(chance.randrange(1, 12)):
            for partition in brokers.partitions:
                partition.script += chance.choices([Error.NONE, *outcomes], k=chance.randrange(4))
            for _ in range(chance.randrange(1, 4)):
                number = chance.randrange(2)
                sent[number].append(producer.send("t", f"{len(sent[number]):02}", partition=number))
            producer.flush(chance.choice([0.1, 3, 9, 15]))
        for partition in brokers.partitions:
            del partition.script[6:]
        assert producer.flush(400)
        for number, partition in enumerate(brokers.partitions):
            partition.script.clear()
            sent[number].append(producer.send("t", f"{len(sent[number]):02}", partition=number))
            assert sent[number][-1].exception(60) is None
    for futures, partition in zip(sent, brokers.partitions, strict=True):
        assert partition.values == sorted(set(partition.values))
        delivered = {f"{number:02}" for number, future in enumerate(futures) if future.exception() is None}
        assert delivered <= set(partition.values)
