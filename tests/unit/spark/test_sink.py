"""One task of a sink: the records that it sends, its transaction, and its errors."""

from __future__ import annotations

import pyarrow
import pytest

from kafkapy.client.prepared_transaction import PreparedTransaction
from kafkapy.errors import ConfigError
from kafkapy.spark import sink, stream_sink
from kafkapy.spark.options import write_options
from kafkapy.spark.sink import QUERY_ID, TaskWritten, task_query_id, write_task
from kafkapy.spark.sink_columns import SinkColumns
from kafkapy.spark.stream_sink import StreamSink

COLUMNS = SinkColumns("t", None, 0, 1, None, None)
WITH_HEADERS = SinkColumns("t", None, None, 0, 2, 1)
SERVER = {"kafka.bootstrap.servers": "h:1", "topic": "t"}
PREPARED = PreparedTransaction("id-3", 7, 1)


class Delivery:
    """The delivery of the rows of one table: pending until `is_done`, and then failed if `error` is set."""

    def __init__(self, error=None, is_done=True):
        self.error = error
        self.is_done = is_done
        self.row_count = 0

    def done(self):
        return self.is_done

    def raise_failure(self):
        if self.is_done and self.error is not None:
            raise self.error

    def result(self):
        assert self.is_done
        self.raise_failure()


class RecordingProducer:
    """A producer that records its calls. `results` are the outcomes of the calls of `send_arrow`."""

    made: list[RecordingProducer] = []
    results: list[Delivery] = []
    prepared = PREPARED

    def __init__(self, properties):
        self.properties = properties
        self.calls = []
        self.open = []
        RecordingProducer.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.calls.append(("close", kind))

    def init_transactions(self, timeout):
        self.calls.append(("init_transactions", timeout))

    def begin_transaction(self):
        self.calls.append(("begin_transaction",))

    def prepare_transaction(self, timeout):
        self.calls.append(("prepare_transaction", timeout))
        return self.prepared

    def send_arrow(self, topic, rows):
        self.calls.append(("send_arrow", topic, rows.to_pydict()))
        delivery = RecordingProducer.results.pop(0) if RecordingProducer.results else Delivery()
        delivery.row_count = rows.num_rows
        self.open.append(delivery)
        return delivery

    def flush(self):
        self.calls.append(("flush",))
        for delivery in self.open:
            delivery.is_done = True


class Task:
    """Spark's context of a task."""

    current = None

    def __init__(self, number, **properties):
        self.number = number
        self.properties = properties

    def partitionId(self):  # noqa: N802
        return self.number

    def getLocalProperty(self, key):  # noqa: N802
        return self.properties.get("query_id") if key == QUERY_ID else None

    @classmethod
    def get(cls):
        return cls.current


@pytest.fixture(autouse=True)
def producers(monkeypatch):
    monkeypatch.setattr(RecordingProducer, "made", [])
    monkeypatch.setattr(RecordingProducer, "results", [])
    monkeypatch.setattr(sink, "Producer", RecordingProducer)
    monkeypatch.setattr(sink, "TaskContext", Task)
    monkeypatch.setattr(Task, "current", Task(3, query_id="query"))
    return RecordingProducer.made


def batch(*rows):
    keys, values = zip(*rows, strict=True)
    return pyarrow.record_batch([pyarrow.array(keys, pyarrow.binary()), pyarrow.array(values, pyarrow.binary())], "kv")


def test_rows_are_sent_in_columns_and_counted(producers):
    written = write_task(write_options(SERVER), COLUMNS, [batch((b"k", b"1"), (None, b"2")), batch((b"k", b"3"))])
    assert (written.records, written.transaction, written.query_id) == (3, None, None)
    (producer,) = producers
    assert producer.properties == {
        "client.id": "kafkapy-spark-sink",
        "bootstrap.servers": "h:1",
        "batch.size": "131072",
    }
    assert producer.calls == [
        ("send_arrow", "t", {"key": [b"k", None], "value": [b"1", b"2"]}),
        ("send_arrow", "t", {"key": [b"k"], "value": [b"3"]}),
        ("flush",),
        ("close", None),
    ]


def test_rows_with_topics_headers_and_partitions_are_one_table_for_each_topic(producers):
    headers = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    rows = pyarrow.record_batch(
        [
            pyarrow.array([b"1", b"2", b"3"]),
            pyarrow.array([[{"key": "h", "value": b"x"}, {"key": "h", "value": None}], None, []], headers),
            pyarrow.array([4, None, 5], pyarrow.int32()),
            pyarrow.array(["a", "b", "a"]),
        ],
        "vhpt",
    )
    columns = WITH_HEADERS._replace(topic=None, topic_index=3)
    assert write_task(write_options({**SERVER, "kafka.client.id": "mine"}), columns, [rows]).records == 3
    assert producers[0].properties["client.id"] == "mine"
    pairs = [{"key": "h", "value": b"x"}, {"key": "h", "value": None}]
    assert producers[0].calls[:2] == [
        ("send_arrow", "a", {"value": [b"1", b"3"], "partition": [4, 5], "headers": [pairs, []]}),
        ("send_arrow", "b", {"value": [b"2"], "partition": [None], "headers": [None]}),
    ]


@pytest.mark.parametrize("is_done", [True, False])
def test_the_error_of_a_record_is_raised_at_the_next_batch_or_at_the_end(producers, is_done):
    RecordingProducer.results = [Delivery(OSError("lost"), is_done)]
    with pytest.raises(OSError, match="lost"):
        write_task(write_options(SERVER), COLUMNS, [batch((b"k", b"1")), batch((b"k", b"2"))])
    sent = [call for call in producers[0].calls if call[0] == "send_arrow"]
    assert len(sent) == (1 if is_done else 2) and producers[0].calls[-1] == ("close", OSError)


def test_a_task_with_a_transactional_id_prepares_a_transaction_of_its_own(producers):
    options = write_options({**SERVER, "kafka.transactional.id": "id"})
    written = write_task(options, COLUMNS, [batch((b"k", b"1"))])
    assert (written.records, written.transaction) == (1, PREPARED)
    (producer,) = producers
    assert producer.properties["transactional.id"] == "id-3"
    assert producer.properties["transaction.timeout.ms"] == "900000"
    names = [call[0] for call in producer.calls]
    assert names == ["init_transactions", "begin_transaction", "send_arrow", "flush", "prepare_transaction", "close"]
    assert {call[1] for call in producer.calls if call[0] in ("init_transactions", "prepare_transaction")} == {120.0}
    Task.current = None
    write_task(
        write_options({**SERVER, "kafka.transactional.id": "id", "kafka.transaction.timeout.ms": "5"}), COLUMNS, []
    )
    assert producers[1].properties["transactional.id"] == "id-0"
    assert producers[1].properties["transaction.timeout.ms"] == "5"


def test_the_id_of_the_query_is_that_of_the_task():
    assert task_query_id() == "query"
    for context in (None, Task(3)):
        Task.current = context
        with pytest.raises(RuntimeError, match=r"does not pass the id of the query .*sql\.streaming\.queryId"):
            task_query_id()


def test_a_stream_without_transactions_writes_and_commits_nothing(producers):
    stream = StreamSink(write_options(SERVER), COLUMNS)
    assert stream.write([batch((b"k", b"1"))]).records == 1
    stream.commit([None], 5)


def test_the_transactions_of_a_stream_need_one_topic():
    without_topic = {"kafka.bootstrap.servers": "h:1", "kafka.transactional.id": "id"}
    with pytest.raises(ConfigError, match="needs the option topic"):
        StreamSink(write_options(without_topic), COLUMNS)


def test_the_transactions_of_a_stream_are_those_of_its_query(monkeypatch, producers):
    asked, committed, aborted = [], [], []
    pending = [False, True]

    def is_pending(options):
        asked.append(options.properties["transactional.id"])
        return pending.pop(0)

    monkeypatch.setattr(stream_sink, "is_batch_pending", is_pending)
    monkeypatch.setattr(stream_sink, "commit_batch", lambda *arguments: committed.append(arguments))
    monkeypatch.setattr(stream_sink, "abort_batch", lambda *arguments: aborted.append(arguments))
    stream = StreamSink(write_options({**SERVER, "kafka.transactional.id": "id"}), COLUMNS)
    written = stream.write([batch((b"k", b"1"))])
    assert (written.records, written.transaction, written.query_id) == (1, PREPARED, "query")
    assert producers[0].properties["transactional.id"] == "id-query-3"
    repeated = stream.write([batch((b"k", b"1"))])
    assert (repeated.records, repeated.transaction, repeated.query_id) == (0, None, "query")
    assert len(producers) == 1 and asked == ["id-query", "id-query"]
    stream.commit([written], 6)
    ((options, messages, batch_id),) = committed
    assert (options.properties["transactional.id"], messages, batch_id) == ("id-query", [written], 6)
    stream.abort([TaskWritten(1), None])
    assert aborted == []
    stream.abort([None, written])
    ((options, messages),) = aborted
    assert (options.properties["transactional.id"], messages) == ("id-query", [None, written])
