"""Sending batches: when they are sent, in what order, and how each error of the broker is handled."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.client import RequestTimedOut
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkapy.protocol.messages.produce import ProduceResponse
from tests.harness.client import MemoryBrokers


class Brokers(MemoryBrokers):
    """Two brokers that store produced batches; they return `refusals` first, one for each batch."""

    def __init__(self):
        super().__init__(node_ids=(1, 2))
        self.add_topic("t", [(1, 0)])
        self.refusals = []
        self.written: list[tuple[int, list[str]]] = []  # base sequence, values
        self.epochs = [(7, 0)]
        self.answers |= {ApiKey.PRODUCE: self._produce, ApiKey.INIT_PRODUCER_ID: self._init}

    def _init(self, request, version):
        producer_id, epoch = self.epochs[-1]
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)

    def _produce(self, request, version):
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        answer = ProduceResponse.PartitionProduceResponse(index=data.index)
        batch = RecordBatch(bytes(data.records))
        refusal = self.refusals.pop(0) if self.refusals else Error.NONE
        if callable(refusal):
            refusal = refusal(answer)
        answer.error_code = int(refusal)
        if not refusal:
            answer.base_offset = sum(len(values) for _, values in self.written)
            self.written.append((batch.base_sequence, [record.value.decode() for record in batch]))
        if request.acks == 0:
            return None
        told = ProduceResponse.TopicProduceResponse(topic_id=topic.topic_id, partition_responses=[answer])
        return ProduceResponse(responses=[told])

    @property
    def values(self):
        return [value for _, values in self.written for value in values]


@pytest.fixture
def brokers():
    harness = Brokers()
    yield harness
    harness.close()


def producer_of(brokers, **settings):
    return brokers.producer(**{"linger_ms": 1000, **settings})


def test_a_batch_leaves_when_it_has_lingered(brokers):
    with producer_of(brokers, linger_ms=5000) as producer:
        producer.partitions_for("t")
        begun = brokers.clock.monotonic_ms()
        assert producer.send("t", "a").result(60).offset == 0
        assert 4900 <= brokers.clock.monotonic_ms() - begun < 6000
        assert brokers.written == [(0, ["a"])]


def test_flush_does_not_wait_for_it(brokers):
    with producer_of(brokers, linger_ms=5000) as producer:
        producer.send("t", "a")
        begun = brokers.clock.monotonic_ms()
        assert producer.flush(60)
        assert brokers.clock.monotonic_ms() - begun < 1000


@pytest.mark.parametrize("code", [Error.NOT_LEADER_OR_FOLLOWER, Error.REQUEST_TIMED_OUT, Error.CORRUPT_MESSAGE])
def test_what_passes_is_tried_again_with_the_same_sequence(brokers, code):
    brokers.refusals += [code, code]
    with producer_of(brokers) as producer:
        assert producer.send("t", "a").result(60).offset == 0
    assert brokers.written == [(0, ["a"])]
    assert len(brokers.of(ApiKey.PRODUCE)) == 3


@pytest.mark.parametrize("retries", [1, 3])
def test_a_batch_is_sent_once_and_then_as_often_as_retries_allows(brokers, retries):
    brokers.refusals += [Error.NOT_ENOUGH_REPLICAS] * 10
    with producer_of(brokers, retries=retries, enable_idempotence=False) as producer:
        error = producer.send("t", "a").exception(60)
        assert isinstance(error, ApiError) and error.error is Error.NOT_ENOUGH_REPLICAS
    assert len(brokers.of(ApiKey.PRODUCE)) == 1 + retries


def test_a_connection_that_breaks_keeps_the_order(brokers):
    with producer_of(brokers, batch_size=100, linger_ms=0) as producer:
        producer.send("t", "first").result(60)
        brokers.breaks += [ApiKey.PRODUCE]
        futures = [producer.send("t", f"{number:050}") for number in range(6)]
        assert producer.flush(60)
        assert [future.result().offset for future in futures] == list(range(1, 7))
    assert brokers.values == ["first", *(f"{number:050}" for number in range(6))]
    assert [sequence for sequence, _ in brokers.written] == list(range(7))


def test_the_leader_that_an_answer_names_is_asked_next(brokers):
    def moved(answer):
        answer.current_leader = ProduceResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
        return Error.NOT_LEADER_OR_FOLLOWER

    brokers.refusals.append(moved)
    with producer_of(brokers) as producer:
        producer.send("t", "a").result(60)
    assert [each.node_id for each in brokers.asked if each.key == ApiKey.PRODUCE] == [1, 2]


def test_what_does_not_pass_is_told(brokers):
    brokers.refusals.append(Error.TOPIC_AUTHORIZATION_FAILED)
    heard = []
    with producer_of(brokers) as producer:
        future = producer.send("t", "a", on_delivery=lambda *told: heard.append(told))
        error = future.exception(60)
        assert isinstance(error, ApiError) and error.error is Error.TOPIC_AUTHORIZATION_FAILED
        assert heard == [(None, error)]


def test_a_batch_that_is_too_large_is_sent_in_halves_and_these_again(brokers):
    brokers.refusals += [Error.MESSAGE_TOO_LARGE, Error.MESSAGE_TOO_LARGE]
    heard = []
    with producer_of(brokers) as producer:
        futures = [
            producer.send("t", f"value-{number}", on_delivery=lambda metadata, error: heard.append(metadata.offset))
            for number in range(8)
        ]
        assert producer.flush(60)
        assert [future.result().offset for future in futures] == list(range(8))
        assert producer.memory_used == 0
    assert heard == list(range(8))
    assert brokers.values == [f"value-{number}" for number in range(8)]
    assert [(sequence, len(values)) for sequence, values in brokers.written] == [(0, 2), (2, 2), (4, 4)]


def test_a_split_uses_up_no_retries_and_no_sequence(brokers):
    """The first of eight records is too large; the others are written although a batch may be sent again only once."""
    brokers.refusals += [Error.MESSAGE_TOO_LARGE] * 4 + [Error.NONE, Error.NOT_ENOUGH_REPLICAS]
    with producer_of(brokers, retries=1) as producer:
        futures = [producer.send("t", str(number)) for number in range(8)]
        assert producer.flush(60)
        refused, *others = [future.exception() for future in futures]
        assert isinstance(refused, ApiError) and refused.error is Error.MESSAGE_TOO_LARGE
        assert others == [None] * 7
    assert brokers.written == [(0, ["1"]), (1, ["2", "3"]), (3, ["4", "5", "6", "7"])]


def test_a_batch_that_was_sent_in_parts_counts_once(brokers):
    brokers.refusals += [Error.MESSAGE_TOO_LARGE, Error.NOT_ENOUGH_REPLICAS]
    with producer_of(brokers) as producer:
        producer.send_many("t", ["a", "b", "c"])
        assert producer.flush(60)
        metrics = {metric.name: value for metric, value in producer.metrics().items()}
    assert (metrics["record-send-total"], metrics["batch-split-total"]) == (3, 1)
    assert metrics["compression-rate-avg"] == 1.0


def test_one_part_may_fail_alone(brokers):
    brokers.refusals += [Error.MESSAGE_TOO_LARGE, Error.INVALID_RECORD]
    with producer_of(brokers, enable_idempotence=False) as producer:
        futures = [producer.send("t", str(number)) for number in range(4)]
        assert producer.flush(60)
        failed = [isinstance(future.exception(), ApiError) for future in futures]
    assert failed == [True, True, False, False]
    assert brokers.values == ["2", "3"]


def test_a_record_that_is_too_large_is_refused(brokers):
    brokers.refusals.append(Error.MESSAGE_TOO_LARGE)
    with producer_of(brokers) as producer:
        error = producer.send("t", "a").exception(60)
        assert error is not None and error.error is Error.MESSAGE_TOO_LARGE


def test_what_was_not_delivered_in_time_is_given_up_and_the_epoch_raised(brokers):
    with producer_of(brokers, delivery_timeout_ms=40_000, request_timeout_ms=10_000) as producer:
        producer.send("t", "first").result(60)
        brokers.refusals += [Error.NOT_ENOUGH_REPLICAS] * 100
        error = producer.send("t", "late").exception(120)
        assert isinstance(error, TimeoutError | ApiError)
        brokers.refusals.clear()
        producer.send("t", "next").result(60)
    assert brokers.written == [(0, ["first"]), (0, ["next"])]


def test_a_broker_that_knows_nothing_of_the_producer_gets_a_new_epoch(brokers):
    with producer_of(brokers) as producer:
        producer.send("t", "first").result(60)
        brokers.refusals.append(Error.UNKNOWN_PRODUCER_ID)
        assert producer.send("t", "second").result(60).offset == 1
    assert [sequence for sequence, _ in brokers.written] == [0, 0]


def test_without_acknowledgements_nothing_is_waited_for(brokers):
    with producer_of(brokers, acks="0") as producer:
        assert producer.send("t", "a").result(60).offset == -1


def test_without_a_broker_there_is_one_clear_error(brokers):
    brokers.down |= {1, 2}
    late = pytest.raises(
        TimeoutError, match=r"not present in metadata after 3000 ms.*No broker can be reached .*memory:1"
    )
    with producer_of(brokers, max_block_ms=3000) as producer, late:
        producer.send("t", "a")


def test_one_batch_in_flight_keeps_the_order_when_the_leader_changes(brokers):
    """The former leader never responds to the first batch; the new leader must not get the second one before it."""
    answer = brokers.answers[ApiKey.PRODUCE]
    brokers.add_topic("other", [(2, 0)])
    has_moved = []

    def respond(request, version):
        is_lost = request.topic_data[0].topic_id == brokers.topics["t"][0] and not has_moved
        return None if is_lost else answer(request, version)

    brokers.answers[ApiKey.PRODUCE] = respond
    settings = {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1, "linger_ms": 0}
    with producer_of(brokers, request_timeout_ms=5000, metadata_max_age_ms=1000, **settings) as producer:
        producer.send("other", "other").result(60)
        producer.send("t", "a")
        assert not producer.flush(0.5)
        brokers.add_topic("t", [(2, 1)])
        has_moved.append(True)
        assert not producer.flush(2)
        producer.send("t", "b")
        assert producer.flush(60)
    assert brokers.values == ["other", "a", "b"]


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_batch_in_flight_fails_after_the_delivery_time_out(brokers, idempotent):
    answer = brokers.answers[ApiKey.PRODUCE]
    brokers.answers[ApiKey.PRODUCE] = lambda request, version: None
    settings = {"request_timeout_ms": 30000, "delivery_timeout_ms": 40000, "linger_ms": 0}
    with producer_of(brokers, enable_idempotence=idempotent, **settings) as producer:
        producer.partitions_for("t")
        begun = brokers.clock.monotonic_ms()
        assert isinstance(producer.send("t", "a").exception(100), RequestTimedOut)
        assert 40000 <= brokers.clock.monotonic_ms() - begun < 41000
        brokers.answers[ApiKey.PRODUCE] = answer
        assert producer.send("t", "b").exception(100) is None
    assert set(brokers.values) == {"b"}
