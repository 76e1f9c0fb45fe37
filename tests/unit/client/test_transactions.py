"""A transactional producer's exchange with its coordinator, in both versions of transactions."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.client import GroupMetadata, TopicPartition
from kafkapy.client.transaction_state import first_error
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from kafkapy.protocol.messages.end_txn import EndTxnResponse
from kafkapy.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkapy.protocol.messages.produce import ProduceResponse
from kafkapy.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from tests.harness.client import MemoryBrokers


class Brokers(MemoryBrokers):
    """A coordinator and a leader that accept every request; `refusals` are errors for produced batches."""

    def __init__(self):
        super().__init__()
        self.add_topic("t", [(1, 0)])
        self.epoch = 0
        self.refusals = []
        self.batches = []  # epoch, base sequence
        self.answers |= {
            ApiKey.INIT_PRODUCER_ID: self._init,
            ApiKey.ADD_PARTITIONS_TO_TXN: self._add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: lambda request, version: AddOffsetsToTxnResponse(),
            ApiKey.TXN_OFFSET_COMMIT: lambda request, version: TxnOffsetCommitResponse(topics=[]),
            ApiKey.END_TXN: self._end,
            ApiKey.PRODUCE: self._produce,
        }

    def _init(self, request, version):
        self.epoch += request.producer_id >= 0
        return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)

    @staticmethod
    def _add_partitions(request, version):
        topics = [
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(partition_index=each)
                    for each in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)

    def _end(self, request, version):
        if version < 5:
            return EndTxnResponse()
        self.epoch += 1
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)

    def _produce(self, request, version):
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        batch = RecordBatch(bytes(data.records))
        self.batches.append((batch.producer_epoch, batch.base_sequence))
        refusal = self.refusals.pop(0) if self.refusals else Error.NONE
        answer = ProduceResponse.PartitionProduceResponse(index=data.index, error_code=int(refusal))
        told = ProduceResponse.TopicProduceResponse(partition_responses=[answer])
        if version >= 13:
            told.topic_id = topic.topic_id
        else:
            told.name = topic.name
        return ProduceResponse(responses=[told])

    def keys(self):
        """Returns the transactional requests so far, in order."""
        order = [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN]
        return [(each.key.name, each.version) for each in self.asked if each.key in [*order, ApiKey.PRODUCE]]


@pytest.fixture
def brokers():
    harness = Brokers()
    yield harness
    harness.close()


def begun(brokers):
    producer = brokers.producer(transactional_id="x", linger_ms=0)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def test_version_2_needs_no_requests_that_add_and_gets_a_new_epoch_at_the_end(brokers):
    brokers.features["transaction.version"] = 2
    with begun(brokers) as producer:
        producer.send("t", "a").result(20)
        producer.send_offsets_to_transaction({TopicPartition("t", 0): 5}, GroupMetadata("g"))
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send("t", "b").result(20)
        producer.abort_transaction()
    assert brokers.keys() == [
        ("PRODUCE", 13),
        ("TXN_OFFSET_COMMIT", 5),
        ("END_TXN", 5),
        ("PRODUCE", 13),
        ("END_TXN", 5),
    ]
    assert brokers.batches == [(0, 0), (1, 0)]


def test_the_coordinator_of_a_group_is_looked_up_once(brokers):
    def lookups(group_id):
        requests = [each.request for each in brokers.asked if each.key is ApiKey.FIND_COORDINATOR]
        return sum(group_id in (request.key, *request.coordinator_keys) for request in requests)

    with begun(brokers) as producer:
        for group_id in ("g", "g", "h"):
            producer.send_offsets_to_transaction({TopicPartition("t", 0): 5}, GroupMetadata(group_id))
            producer.commit_transaction()
            producer.begin_transaction()
        producer.abort_transaction()
    assert (lookups("g"), lookups("h")) == (1, 1)


def test_another_coordinator_of_a_group_is_looked_up(brokers):
    moved = [Error.NOT_COORDINATOR]

    def commit(request, version):
        code = moved.pop() if moved else Error.NONE
        partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(partition_index=0, error_code=int(code))
        topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name="t", partitions=[partition])
        return TxnOffsetCommitResponse(topics=[topic])

    brokers.answers[ApiKey.TXN_OFFSET_COMMIT] = commit
    with begun(brokers) as producer:
        for _ in range(2):
            producer.send_offsets_to_transaction({TopicPartition("t", 0): 5}, GroupMetadata("g"))
            producer.commit_transaction()
            producer.begin_transaction()
        producer.abort_transaction()
    assert sum(each.key is ApiKey.FIND_COORDINATOR for each in brokers.asked) == 3, "x, and g before and after the move"


@pytest.mark.parametrize("level", [0, 1])
def test_before_it_partitions_and_groups_are_added_first(brokers, level):
    brokers.features["transaction.version"] = level
    with begun(brokers) as producer:
        producer.send("t", "a").result(20)
        producer.send_offsets_to_transaction({TopicPartition("t", 0): 5}, GroupMetadata("g"))
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send("t", "b").result(20)
        producer.commit_transaction()
    assert brokers.keys() == [
        ("ADD_PARTITIONS_TO_TXN", 3),
        ("PRODUCE", 11),
        ("ADD_OFFSETS_TO_TXN", 3),
        ("TXN_OFFSET_COMMIT", 4),
        ("END_TXN", 4),
        ("ADD_PARTITIONS_TO_TXN", 3),
        ("PRODUCE", 11),
        ("END_TXN", 4),
    ]
    assert brokers.batches == [(0, 0), (0, 1)]


@pytest.mark.parametrize("level", [0, 2])
def test_after_a_failure_only_an_abort_leads_on(brokers, level):
    brokers.features["transaction.version"] = level
    brokers.refusals.append(Error.TRANSACTION_ABORTABLE)
    with begun(brokers) as producer:
        assert producer.send("t", "a").exception(20) is not None
        with pytest.raises(ApiError, match="TRANSACTION_ABORTABLE"):
            producer.send("t", "refused")
        with pytest.raises(ApiError, match="TRANSACTION_ABORTABLE"):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", "b").result(20)
        producer.commit_transaction()
    assert brokers.batches == [(0, 0), (1, 0)]


def test_an_empty_transaction_asks_nobody(brokers):
    brokers.features["transaction.version"] = 2
    with begun(brokers) as producer:
        producer.commit_transaction()
    assert brokers.keys() == []


def test_who_is_fenced_is_of_no_use_any_more(brokers):
    brokers.refusals.append(Error.PRODUCER_FENCED)
    with begun(brokers) as producer:
        producer.send("t", "a").exception(20)
        for method in (
            lambda: producer.send("t", "b"),
            producer.commit_transaction,
            producer.abort_transaction,
            producer.begin_transaction,
        ):
            with pytest.raises(ApiError, match="PRODUCER_FENCED"):
                method()


@pytest.mark.parametrize(
    ("codes", "first"),
    [
        ([], Error.NONE),
        ([0, 0], Error.NONE),
        ([0, Error.OPERATION_NOT_ATTEMPTED, Error.TOPIC_AUTHORIZATION_FAILED], Error.TOPIC_AUTHORIZATION_FAILED),
        ([Error.OPERATION_NOT_ATTEMPTED], Error.NONE),
    ],
)
def test_the_first_error_is_that_of_a_partition_that_was_attempted(codes, first):
    kind = AddPartitionsToTxnResponse
    results = [
        kind.AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=int(code))
        for each, code in enumerate(codes)
    ]
    topic = kind.AddPartitionsToTxnTopicResult(name="t", results_by_partition=results)
    assert first_error(kind(results_by_topic_v3_and_below=[topic])) is first


def test_an_error_at_the_end_of_a_transaction_is_not_forgotten(brokers):
    brokers.features["transaction.version"] = 2
    brokers.answers[ApiKey.END_TXN] = lambda request, version: EndTxnResponse(
        error_code=int(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    )
    with begun(brokers) as producer:
        producer.send("t", "a").result(20)
        for _ in range(2):
            with pytest.raises(ApiError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
                producer.commit_transaction()
    assert len(brokers.of(ApiKey.END_TXN)) == 1
