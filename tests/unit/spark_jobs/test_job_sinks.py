"""The sinks of the jobs without a JVM: which writer each one gets, and the transactions of a topic."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from types import SimpleNamespace

import pytest

import kafkapy.client
from kafkapy.client import TopicPartition
from kafkapy_jobs import sink
from kafkapy_jobs.sink import await_queries, print_rows, run_batch, run_stream, show_stream
from kafkapy_jobs.transactional_topic import QUERY_ID, TransactionalTopic


class Writer:
    """A DataFrame's writer of streams or batches, which records its calls."""

    def __init__(self, session=None):
        self.calls = []
        self.session = session

    def __getattr__(self, name):
        def call(*arguments, **named):
            self.calls.append((name, *arguments, *sorted(named.items())))
            if name == "start":
                query = Query(self)
                self.session.started.append(query)
                return query
            return self

        return call

    def given(self, name):
        """Returns the arguments of the only call of a method; None if there is none."""
        found = [call[1:] for call in self.calls if call[0] == name]
        assert len(found) <= 1
        return found[0] if found else None


class Query:
    """A query that has ended already, with or without an error."""

    def __init__(self, writer, error=None, is_active=False):
        self.writer = writer
        self.error = error
        self.isActive = is_active
        self.runId = "run"
        self.is_stopped = False

    def awaitTermination(self):  # noqa: N802
        if self.error is not None:
            raise self.error

    def stop(self):
        self.is_stopped = True


class Streams:
    """A replacement for a session's `streams`: it stores the calls of its methods instead of managing queries."""

    def __init__(self, on_wait=None):
        self.calls = []
        self.on_wait = on_wait

    def addListener(self, listener):  # noqa: N802
        self.calls.append("add")
        listener.await_end = lambda run_ids: self.calls.append(("await", list(run_ids)))

    def removeListener(self, listener):  # noqa: N802
        self.calls.append("remove")

    def resetTerminated(self):  # noqa: N802
        self.calls.append("reset")

    def awaitAnyTermination(self):  # noqa: N802
        self.calls.append("wait")
        self.on_wait()


class Frame:
    """A DataFrame that knows its session and its writers."""

    def __init__(self, session, rows=()):
        self.sparkSession = session
        self.rows = list(rows)
        self.write = Writer()

    @property
    def writeStream(self):  # noqa: N802
        return Writer(self.sparkSession)

    def where(self, condition):
        return self

    def collect(self):
        return self.rows

    def toLocalIterator(self):  # noqa: N802
        return iter(self.rows)


@pytest.fixture
def session(monkeypatch):
    registered = []
    monkeypatch.setattr(sink, "register", lambda spark, source: registered.append(source))
    monkeypatch.setattr(sink, "dead_letters", lambda rows: rows)
    monkeypatch.setattr(sink, "F", SimpleNamespace(col=lambda name: SimpleNamespace(isNotNull=lambda: None)))
    context = SimpleNamespace(getLocalProperty=lambda key: "query" if key == QUERY_ID else None)
    return SimpleNamespace(streams=Streams(), started=[], registered=registered, sparkContext=context)


def arguments(**more):
    given = {
        "bootstrap_server": "h:1",
        "source": "kafkapy",
        "source_option": [("kafka.client.rack", "r")],
        "sink_option": [("kafka.linger.ms", "5"), ("acks", "all")],
        "sink": ["console"],
        "output_topic": "out",
        "output_path": "/out",
        "dead_letter_topic": None,
        "delivery": "exactly-once",
        "checkpoint": "/checkpoints/",
        "trigger": "5000 milliseconds",
        "save_mode": "append",
        "jdbc_url": "jdbc:x",
        "jdbc_table": "table",
    }
    return Namespace(**{**given, **more})


def run_sinks(session, mode="append", **more):
    """Starts the sinks that `more` requests for a stream; returns the writer of each query by the name of the query."""
    frame = Frame(session)
    run_stream(frame, frame, Frame(session), arguments(**more), lambda rows: [str(row) for row in rows], mode=mode)
    return {query.writer.given("queryName")[0]: query.writer for query in session.started}


def test_each_sink_of_a_stream_is_a_query_with_a_checkpoint_of_its_own(session):
    writers = run_sinks(session, sink=["console", "parquet", "topic"], dead_letter_topic="letters", mode="update")
    assert list(writers) == ["console", "parquet", "topic", "dead-letters"]
    for name, writer in writers.items():
        assert ("option", "checkpointLocation", f"/checkpoints/{name}") in writer.calls
        assert writer.given("trigger") == (("processingTime", "5000 milliseconds"),)
        assert writer.given("outputMode") == ("append" if name == "dead-letters" else "update",)
    assert writers["parquet"].given("format") == ("parquet",)
    assert ("option", "path", "/out") in writers["parquet"].calls
    assert session.streams.calls == ["add", "reset", ("await", ["run"] * 4), "remove"]
    assert all(query.is_stopped for query in session.started)


def test_the_console_prints_the_lines_of_each_batch(session, capsys):
    writer = run_sinks(session, checkpoint=None, trigger="available-now")["console"]
    assert writer.given("trigger") == (("availableNow", True),) and writer.given("option") is None
    (function,) = writer.given("foreachBatch")
    function(Frame(session, ["a", "b"]), 0)
    assert capsys.readouterr().out == "a\nb\n"


def test_a_topic_is_written_in_transactions_unless_the_user_says_otherwise(session):
    (function,) = run_sinks(session, sink=["topic"])["topic"].given("foreachBatch")
    assert isinstance(function, TransactionalTopic) and session.registered == []
    assert function._topic == "out"
    assert function._properties == {"bootstrap.servers": "h:1", "client.rack": "r", "linger.ms": "5", "acks": "all"}
    for more, source in (({"delivery": "at-least-once"}, "kafkapy"), ({"source": "kafka"}, "kafka")):
        session.started.clear()
        session.registered.clear()
        writer = run_sinks(session, sink=["topic"], **more)["topic"]
        assert session.registered == [source] and writer.given("format") == (source,)
        assert dict(writer.given("options")) == {
            "kafka.bootstrap.servers": "h:1", "kafka.client.rack": "r", "kafka.linger.ms": "5", "acks": "all",
            "topic": "out",
        }  # fmt: skip


def test_the_listener_is_removed_when_a_query_fails(session, monkeypatch):
    monkeypatch.setattr(Query, "awaitTermination", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_sinks(session)
    assert session.streams.calls[-2:] == [("await", ["run"]), "remove"]
    assert session.started[0].is_stopped


def test_all_queries_end_with_the_first_that_fails():
    queries = [Query(None, is_active=True), Query(None, ZeroDivisionError(), is_active=True)]

    def end():
        queries[1].isActive = False
        raise ZeroDivisionError

    spark = SimpleNamespace(streams=Streams(end))
    with pytest.raises(ZeroDivisionError):
        await_queries(spark, queries)
    assert all(query.is_stopped for query in queries)


def test_a_job_waits_for_all_of_its_queries():
    queries = [Query(None, is_active=True), Query(None, is_active=True)]

    def end():
        next(query for query in queries if query.isActive).isActive = False

    streams = Streams(end)
    await_queries(SimpleNamespace(streams=streams), queries)
    assert streams.calls == ["wait", "reset"] * 2


def test_ctrl_c_stops_the_queries_without_an_error():
    def interrupt():
        raise KeyboardInterrupt

    query = Query(None, is_active=True)
    await_queries(SimpleNamespace(streams=Streams(interrupt)), [query])
    assert query.is_stopped


def test_a_stream_is_shown_as_tables_of_spark(session):
    writer = show_stream(Frame(session), arguments(), "sql").writer
    assert writer.given("format") == ("console",) and writer.given("queryName") == ("sql",)
    assert writer.given("option") == ("truncate", "false") and writer.given("outputMode") == ("append",)
    assert writer.given("trigger") == (("processingTime", "5000 milliseconds"),)


def run_finished(session, monkeypatch, rejected, **more):
    """Writes one batch to the sinks that `more` requests; returns its frames: all rows, the result, and the records.

    `rejected` has the reason of each rejected row.
    """
    monkeypatch.setattr(sink, "count_rejected", lambda rows: Counter(rejected))
    rows, result, records = Frame(session), Frame(session, ["plain"]), Frame(session)
    printed = more.pop("printed", None)
    run_batch(rows, result, records, arguments(**more), lambda found: found, printed=printed)
    return rows, result, records


def test_a_batch_is_written_to_each_sink(session, monkeypatch, capsys):
    _, result, records = run_finished(session, monkeypatch, {}, sink=["console", "topic", "parquet", "jdbc"])
    assert capsys.readouterr() == ("plain\n", "")
    assert records.write.given("format") == ("kafkapy",) and records.write.given("mode") == ("append",)
    assert dict(records.write.given("options"))["topic"] == "out"
    assert ("format", "parquet") in result.write.calls and ("save", "/out") in result.write.calls
    assert ("mode", "append") in result.write.calls
    assert ("format", "jdbc") in result.write.calls
    expected = {"url": "jdbc:x", "dbtable": "table", "kafka.linger.ms": "5", "acks": "all", "truncate": "true"}
    assert dict([call[1:] for call in result.write.calls if call[0] == "options"][-1]) == expected


def test_the_console_shows_another_form_of_the_result(session, monkeypatch, capsys):
    run_finished(session, monkeypatch, {}, printed=Frame(session, ["with quotes"]))
    assert capsys.readouterr().out == "with quotes\n"


def test_rejected_rows_are_counted_and_become_dead_letters(session, monkeypatch, capsys):
    rows, *_ = run_finished(session, monkeypatch, {"blank": 2, "bad": 1}, dead_letter_topic="letters")
    assert capsys.readouterr().err == "3 rows left out (bad: 1, blank: 2)\n"
    assert dict(rows.write.given("options"))["topic"] == "letters"
    without_topic, *_ = run_finished(session, monkeypatch, {"blank": 2})
    without_rows, *_ = run_finished(session, monkeypatch, {}, dead_letter_topic="letters")
    assert without_topic.write.calls == without_rows.write.calls == []


def test_rows_are_printed_at_once(capsys, monkeypatch):
    flushed = []
    monkeypatch.setattr(sink.sys.stdout, "flush", lambda: flushed.append(True), raising=False)
    print_rows(["a"], lambda rows: rows)
    assert flushed == [True]


class Client:
    """A producer and a consumer of kafkapy that share what is committed."""

    def __init__(self, committed=None, fails=False):
        self.committed_batch = committed
        self.fails = fails
        self.calls = []
        self.properties = []

    def __call__(self, properties):
        self.properties.append(properties)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __getattr__(self, name):
        return lambda *arguments, **named: self.calls.append((name, *arguments, *named.values()))

    def send(self, topic, value, *, key, headers):
        if self.fails:
            raise OSError("lost")
        self.calls.append(("send", topic, key, value, headers))

    def committed(self, partitions):
        self.calls.append(("committed",))
        batch = self.committed_batch
        return dict.fromkeys(partitions, None if batch is None else SimpleNamespace(offset=batch))


class Record(dict):
    """A row of a DataFrame."""


def topic_of(monkeypatch, **client):
    made = Client(**client)
    monkeypatch.setattr(kafkapy.client, "Producer", made)
    monkeypatch.setattr(kafkapy.client, "Consumer", made)
    return made, TransactionalTopic("out", {"bootstrap.servers": "h:1"})


ROWS = [Record(key=b"k", value=b"v"), Record(key=None, value=b"w", headers=[{"key": "h", "value": bytearray(b"x")}])]


def test_a_batch_and_the_number_of_the_next_are_one_transaction(session, monkeypatch):
    client, topic = topic_of(monkeypatch)
    topic(Frame(session, ROWS), 3)
    group = "kafkapy-jobs-query"
    assert client.properties[0] == {"bootstrap.servers": "h:1", "transactional.id": group}
    assert client.properties[1] == {"bootstrap.servers": "h:1", "group.id": group, "enable.auto.commit": False}
    names = [call[0] for call in client.calls]
    assert names[:3] == ["init_transactions", "partitions_for", "committed"]
    assert client.calls[3:6] == [
        ("begin_transaction",), ("send", "out", b"k", b"v", None), ("send", "out", None, b"w", [("h", b"x")]),
    ]  # fmt: skip
    name, offsets, metadata = client.calls[6]
    assert (name, offsets) == ("send_offsets_to_transaction", {TopicPartition("out", 0): 4})
    assert metadata.group_id == group and client.calls[7:] == [("commit_transaction",)]


def test_a_batch_that_is_written_already_is_skipped(session, monkeypatch):
    client, topic = topic_of(monkeypatch, committed=4)
    topic(Frame(session, ROWS), 3)
    assert not [call for call in client.calls if call[0] == "begin_transaction"]
    topic(Frame(session, ROWS), 4)
    topic(Frame(session, ROWS), 4)
    topic(Frame(session), 5)
    assert len([call for call in client.calls if call[0] == "commit_transaction"]) == 1
    assert len(client.properties) == 2


def test_a_batch_that_fails_is_aborted_and_written_again(session, monkeypatch):
    client, topic = topic_of(monkeypatch, fails=True)
    with pytest.raises(OSError, match="lost"):
        topic(Frame(session, ROWS), 0)
    assert client.calls[-1] == ("abort_transaction",)
    client.fails = False
    topic(Frame(session, ROWS), 0)
    assert client.calls[-1] == ("commit_transaction",)
