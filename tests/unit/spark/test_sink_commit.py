"""The driver's commit of a micro-batch: the order of ledger and transactions, and what a repeated batch does."""

from __future__ import annotations

import json

import pytest

from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.prepared_transaction import PreparedTransaction
from kafkapy.errors import ApiError, Error
from kafkapy.spark import sink_commit
from kafkapy.spark.options import write_options
from kafkapy.spark.sink import TaskWritten
from kafkapy.spark.sink_commit import (
    LEDGER_BYTES,
    LedgerEntry,
    SinkError,
    SinkLedger,
    abort_batch,
    abort_tasks,
    client_properties,
    commit_batch,
    commit_tasks,
    is_batch_pending,
    transactions_of,
)
from kafkapy.types import TopicPartition

OPTIONS = write_options(
    {
        "kafka.bootstrap.servers": "h:1",
        "topic": "t",
        "kafka.transactional.id": "id",
        "kafka.linger.ms": "5",
        "kafka.client.id": "c",
    }
)
FIRST, SECOND = PreparedTransaction("id-0", 7, 1), PreparedTransaction("id-1", 8, 2)
MESSAGES = [TaskWritten(3, FIRST), None, TaskWritten(0), TaskWritten(2, SECOND)]


class Brokers:
    """The state of the brokers, with the order of the driver's requests."""

    def __init__(self):
        self.committed = None
        self.events = []
        self.failure = None
        self.consumers = []

    def consumer(self, properties):
        self.consumers.append(LedgerConsumer(self, properties))
        return self.consumers[-1]

    def end(self, properties, transactions, *, committed):
        assert properties == {"bootstrap.servers": "h:1", "client.id": "c"}
        if transactions:
            self.events.append(("commit" if committed else "abort", [each.transactional_id for each in transactions]))
        if committed and self.failure is not None:
            raise self.failure

    @property
    def batch(self):
        return None if self.committed is None else (self.committed.offset, json.loads(self.committed.metadata or "[]"))


class LedgerConsumer:
    """A consumer of the ledger's group."""

    def __init__(self, brokers, properties):
        self.brokers = brokers
        self.is_closed = False
        assert properties["group.id"] == "id" and properties["enable.auto.commit"] == "false"
        assert "linger.ms" not in properties

    def committed(self, partitions):
        assert partitions == [TopicPartition("t", 0)]
        return dict.fromkeys(partitions, self.brokers.committed)

    def commit(self, offsets):
        ((partition, self.brokers.committed),) = offsets.items()
        assert partition == TopicPartition("t", 0)
        self.brokers.events.append(("ledger", *self.brokers.batch))

    def close(self):
        assert not self.is_closed
        self.is_closed = True


@pytest.fixture
def brokers(monkeypatch):
    made = Brokers()
    monkeypatch.setattr(sink_commit, "Consumer", made.consumer)
    monkeypatch.setattr(sink_commit, "end_transactions", made.end)
    return made


def test_a_batch_is_decided_before_its_first_commit_and_done_after_the_last(brokers):
    commit_batch(OPTIONS, MESSAGES, 4)
    assert brokers.events == [
        ("ledger", 4, [[0, 7, 1], [1, 8, 2]]),
        ("commit", ["id-0", "id-1"]),
        ("ledger", 4, []),
    ]
    assert [each.is_closed for each in brokers.consumers] == [True]


def test_a_decided_batch_is_committed_by_its_ledger_and_what_was_written_again_is_aborted(brokers):
    brokers.failure = TimeoutError()
    with pytest.raises(TimeoutError):
        commit_batch(OPTIONS, MESSAGES, 4)
    assert is_batch_pending(OPTIONS)
    brokers.failure = None
    brokers.events.clear()
    commit_batch(OPTIONS, [TaskWritten(3, PreparedTransaction("id-9", 9, 9))], 4)
    assert brokers.events == [("abort", ["id-9"]), ("commit", ["id-0", "id-1"]), ("ledger", 4, [])]
    assert not is_batch_pending(OPTIONS)


def test_the_transactions_of_a_decided_batch_are_not_aborted_when_spark_gives_the_batch_up(brokers):
    brokers.failure = TimeoutError()
    with pytest.raises(TimeoutError):
        commit_batch(OPTIONS, MESSAGES, 4)
    brokers.failure = None
    brokers.events.clear()
    abort_batch(OPTIONS, [*MESSAGES, TaskWritten(3, PreparedTransaction("id-9", 9, 9))])  # after a failed commit
    assert brokers.events == [("abort", ["id-9"])]
    commit_batch(OPTIONS, [TaskWritten(0)], 4)
    assert brokers.events[1:] == [("commit", ["id-0", "id-1"]), ("ledger", 4, [])]


def test_the_transactions_of_an_undecided_batch_are_aborted(brokers):
    abort_batch(OPTIONS, MESSAGES)
    commit_batch(OPTIONS, MESSAGES, 4)
    brokers.events.clear()
    abort_batch(OPTIONS, [TaskWritten(3, PreparedTransaction("id-0", 7, 2)), None])
    abort_batch(OPTIONS, [TaskWritten(0), None])
    assert brokers.events == [("abort", ["id-0"])]
    assert all(each.is_closed for each in brokers.consumers)


def test_a_batch_that_is_done_is_not_committed_again(brokers):
    commit_batch(OPTIONS, MESSAGES, 4)
    brokers.events.clear()
    commit_batch(OPTIONS, MESSAGES, 4)
    assert brokers.events == [("abort", ["id-0", "id-1"])]


def test_batches_without_records_are_recorded_only_after_the_first_one(brokers):
    assert not is_batch_pending(OPTIONS)
    commit_batch(OPTIONS, [TaskWritten(0)], 0)
    assert brokers.events == []
    commit_batch(OPTIONS, MESSAGES, 1)
    brokers.events.clear()
    commit_batch(OPTIONS, [TaskWritten(0)], 2)
    assert brokers.events == [("ledger", 2, [])]


def test_an_older_batch_is_refused(brokers):
    commit_batch(OPTIONS, MESSAGES, 4)
    brokers.events.clear()
    with pytest.raises(SinkError, match="Batch 3 comes after batch 4 of the same query"):
        commit_batch(OPTIONS, MESSAGES, 3)
    assert brokers.events == []


def test_the_batch_after_one_that_is_not_committed_is_refused(brokers):
    brokers.committed = OffsetAndMetadata(4, "[[0,7,1]]")
    with pytest.raises(SinkError, match="Batch 4 was decided and not committed, but batch 5 is running"):
        commit_batch(OPTIONS, MESSAGES, 5)
    assert brokers.events == []


@pytest.mark.parametrize("error", [Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_TXN_STATE])
def test_a_transaction_that_the_brokers_have_aborted_is_reported(brokers, error):
    brokers.failure = ApiError(error)
    with pytest.raises(SinkError, match=r"one of its transactions has been aborted .*transaction\.timeout\.ms"):
        commit_batch(OPTIONS, MESSAGES, 4)
    assert brokers.batch == (4, [[0, 7, 1], [1, 8, 2]])


def test_other_errors_of_a_commit_are_raised_as_they_are(brokers):
    brokers.failure = ApiError(Error.NOT_COORDINATOR)
    with pytest.raises(ApiError) as raised:
        commit_batch(OPTIONS, MESSAGES, 4)
    assert raised.value is brokers.failure


def test_the_ledger_reads_what_it_has_written(brokers):
    with SinkLedger(OPTIONS) as ledger:
        assert ledger.read() is None
        for entry in (LedgerEntry(5, [FIRST, SECOND]), LedgerEntry(6, [])):
            ledger.write(entry)
            assert ledger.read() == entry
    assert brokers.committed == OffsetAndMetadata(6, "")


def test_more_transactions_than_the_metadata_hold_are_refused(brokers):
    def entry(count):
        return LedgerEntry(0, [PreparedTransaction(f"id-{number % 10}", 100, 1) for number in range(count)])

    fitting = (LEDGER_BYTES - 1) // len("[1,100,1],")
    with SinkLedger(OPTIONS) as ledger:
        ledger.write(entry(fitting))
        assert LEDGER_BYTES - len("[1,100,1],") < len(brokers.committed.metadata) <= LEDGER_BYTES
        with pytest.raises(SinkError, match=f"{fitting + 1} tasks wrote in one batch, .*use coalesce before writing"):
            ledger.write(entry(fitting + 1))


def test_the_metadata_may_be_as_long_as_the_broker_allows(brokers):
    """409 transactions of ten bytes, five additional digits and a bracket are 4,096 bytes."""
    pending = [PreparedTransaction("id-1", 100, 1)] * 408
    with SinkLedger(OPTIONS) as ledger:
        ledger.write(LedgerEntry(0, [*pending, PreparedTransaction("id-1", 10_000_000, 1)]))
        assert len(brokers.committed.metadata) == 4096
        with pytest.raises(SinkError):
            ledger.write(LedgerEntry(0, [*pending, PreparedTransaction("id-1", 100_000_000, 1)]))


def test_a_batch_query_ends_the_transactions_of_its_tasks(brokers):
    commit_tasks(OPTIONS, MESSAGES)
    abort_tasks(OPTIONS, MESSAGES)
    assert brokers.events == [("commit", ["id-0", "id-1"]), ("abort", ["id-0", "id-1"])]


def test_nothing_is_aborted_without_transactions(monkeypatch):
    monkeypatch.setattr(sink_commit, "end_transactions", None)
    abort_tasks(OPTIONS, [TaskWritten(3), None])


def test_only_prepared_transactions_are_ended_with_the_keys_of_every_client():
    assert transactions_of(MESSAGES) == [FIRST, SECOND]
    assert client_properties(OPTIONS) == {"bootstrap.servers": "h:1", "client.id": "c"}
