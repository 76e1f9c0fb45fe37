"""A job as a program: its errors, its broker, its settings, its report."""

from __future__ import annotations

import re
import socket
from argparse import Namespace
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

from kafkapy_jobs import program, session, source
from kafkapy_jobs.preflight import require_broker
from kafkapy_jobs.program import error_line, run
from kafkapy_jobs.report import Report
from kafkapy_jobs.session import start_session
from kafkapy_jobs.source import connection_options

TRACE = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed
Traceback (most recent call last):
  File "source_cluster.py", line 90, in partitions
{error}
        at org.apache.spark.sql.execution.python.streaming(Runner.scala:1)
== Physical Plan ==
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("kafkapy.errors.ApiError: UNKNOWN_TOPIC_OR_PARTITION: Topic t", "UNKNOWN_TOPIC_OR_PARTITION: Topic t"),
        ("kafkapy.spark.data_loss.DataLossError: Partition t-0 begins", "Partition t-0 begins"),
        ("TimeoutError: No metadata of the topics", "No metadata of the topics"),
        ("kafkapy.errors.ConfigError: first\nkafkapy.errors.ConfigError: last", "last"),
        ("ValueError: of the job itself", None),
    ],
)
def test_the_line_of_an_error_is_that_of_the_data_source(error, line):
    assert error_line(StreamingQueryException(TRACE.format(error=error))) == line


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            "Task failed: [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match.\nmore",
            ["(STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE)", "give --checkpoint a new folder"],
        ),
        (
            "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match",
            ["give --checkpoint a new folder"],
        ),
        (
            "[DELTA_FAILED_TO_MERGE_FIELDS] Failed to merge fields 'id' and 'id'.\nmore",
            ["Failed to merge fields 'id' and 'id'.", "a table of its own"],
        ),
        (
            "org.apache.iceberg.exceptions.CommitFailedException: Version 3 already exists.\nmore",
            ["Version 3 already exists.", "start the job again"],
        ),
        ("Python worker failed to connect back", ["did not start within ten seconds", "start the job again"]),
    ],
)
def test_an_error_of_circumstances_says_what_to_do(error, words):
    line = error_line(StreamingQueryException(TRACE.format(error=error)))
    assert "\n" not in line and all(word in line for word in words), line


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        ("java.lang.IllegalArgumentException: Field headers not found in source schema", "Field headers not found"),
        ("org.apache.iceberg.exceptions.CommitFailedException: Version 3 already exists", "Version 3 already exists"),
    ],
)
def test_an_error_of_iceberg_is_found_in_the_causes(raised, words):
    """The text of the error itself has neither the class of its cause nor its origin."""
    error = StreamingQueryException("[STREAM_FAILED] Query [id = 1] terminated with exception: it failed\n== Plan ==")
    trace = (
        "org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED]\n\tat org.apache.spark.sql.A.b(A:1)\n"
    )
    error._stackTrace = f"{trace}Caused by: {raised}\n\tat org.apache.spark.sql.C.d(C:2)\n"
    assert error_line(error) is None, "raised by other code"
    error._stackTrace = f"{trace}Caused by: {raised}\n\tat org.apache.iceberg.relocated.C.d(C:2)\n\t... 9 more\n"
    line = error_line(error)
    assert "\n" not in line and words in line and "a table of its own" in line


def test_an_error_of_a_query_is_its_first_line():
    assert error_line(AnalysisException("\n[PATH_NOT_FOUND] Path does not exist: x.\nmore")) == (
        "[PATH_NOT_FOUND] Path does not exist: x."
    )


class Session:
    """A session that can be stopped."""

    def __init__(self):
        self.is_stopped = False

    def stop(self):
        self.is_stopped = True


@pytest.fixture
def active(monkeypatch):
    made = Session()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: made)
    return made


def failing():
    raise StreamingQueryException(TRACE.format(error="kafkapy.errors.ApiError: Topic t"))


def test_a_program_stops_its_session_and_reports_an_error_in_one_line(active, capsys):
    run(lambda: None)
    assert active.is_stopped
    active.is_stopped = False
    with pytest.raises(SystemExit) as ended:
        run(failing)
    assert ended.value.code == 1 and active.is_stopped
    assert capsys.readouterr() == ("", "Topic t\n")


def test_other_errors_are_raised_as_they_are(active, monkeypatch):
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 / 0)
    monkeypatch.setattr(program.sys, "argv", ["job", "--verbose"])
    with pytest.raises(StreamingQueryException):
        run(failing)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    run(lambda: None)


@pytest.fixture
def refusing_server():
    with socket.socket() as reserved:  # a port on which nobody listens
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


def arguments(server, **more):
    return Namespace(**{"bootstrap_server": server, "source": "kafkapy", "source_option": [], **more})


@pytest.mark.parametrize(
    "more", [{}, {"source": "files", "sink": ["topic"]}, {"source": "files", "dead_letter_topic": "d"}]
)
def test_a_broker_that_cannot_be_reached_ends_the_program(refusing_server, capsys, more):
    with pytest.raises(SystemExit) as ended:
        require_broker(arguments(refusing_server, **more))
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith(f"--bootstrap-server {refusing_server}: ") and "Connection refused" in error


def test_the_broker_is_not_asked_for_what_it_does_not_serve(refusing_server):
    require_broker(arguments(refusing_server, source="kafka"))
    require_broker(arguments(refusing_server, source="files", sink=["console", "parquet"], dead_letter_topic=None))
    require_broker(arguments(None))


def test_a_broker_that_accepts_a_connection_is_enough(refusing_server):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        require_broker(arguments(address))
        require_broker(arguments(refusing_server, source_option=[("kafka.bootstrap.servers", address)]))


def test_the_connection_has_the_clients_keys_of_the_options():
    options = [("kafka.client.rack", "r"), ("includeHeaders", "true")]
    assert connection_options(arguments("h:1", source_option=options)) == {
        "kafka.bootstrap.servers": "h:1",
        "kafka.client.rack": "r",
    }


def test_a_python_without_kafkapy_is_named(monkeypatch, capsys):
    monkeypatch.setitem(source.sys.modules, "kafkapy.tools.bootstrap", None)
    monkeypatch.setattr(source.sys, "executable", "/some/python")
    source.register(None, "kafka")
    monkeypatch.setitem(source.sys.modules, "kafkapy", None)
    for call in (lambda: source.register(None, "kafkapy"), lambda: require_broker(arguments("h:1"))):
        with pytest.raises(SystemExit):
            call()
        assert re.match(r"/some/python has no kafkapy.*: set PYSPARK_PYTHON", capsys.readouterr().err)


class FakeBuilder:
    """A session's builder, which is the session too; it has one setting of spark-submit."""

    def __init__(self):
        self.settings = {}
        self.levels = {}
        self.master_name = None
        self.conf = SimpleNamespace(set=self.settings.__setitem__)
        given = SimpleNamespace(contains=lambda key: key == "spark.sql.shuffle.partitions")
        configurator = SimpleNamespace(setLevel=self.levels.__setitem__)
        log4j = SimpleNamespace(
            Level=SimpleNamespace(ERROR="error", OFF="off"),
            core=SimpleNamespace(config=SimpleNamespace(Configurator=configurator)),
        )
        jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(logging=SimpleNamespace(log4j=log4j))))
        self.sparkContext = SimpleNamespace(getConf=lambda: given, _jvm=jvm)

    def appName(self, name):  # noqa: N802
        self.name = name
        return self

    def master(self, name):
        self.master_name = name
        return self

    def getOrCreate(self):  # noqa: N802
        return self


@pytest.fixture
def builder(monkeypatch):
    made = FakeBuilder()
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=made))
    monkeypatch.setattr(session, "check_job", lambda name, arguments: None)
    return made


def test_settings_of_spark_submit_take_precedence(builder):
    start_session("job", Namespace(shuffle_partitions=7, time_zone=None, verbose=False, trigger="1 s"))
    assert builder.name == "job" and builder.master_name is None
    assert builder.settings == {
        "spark.sql.streaming.stateStore.providerClass": session.STATE_STORE,
        "spark.sql.adaptive.enabled": "false",
    }
    start_session("job", Namespace(shuffle_partitions=7, time_zone=None, verbose=False), "local[3]")
    assert builder.master_name == "local[3]"


def test_warnings_about_new_keys_and_traces_that_the_program_reports_are_not_logged(builder):
    common = {"shuffle_partitions": 7, "time_zone": None}
    start_session("job", Namespace(**common, verbose=True))
    assert builder.levels == dict.fromkeys(session.STATE_SERVERS, "error")
    start_session("job", Namespace(**common, verbose=False))
    assert builder.levels["org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"] == "off"


def event(name, rejected, late, run_id="r"):
    progress = SimpleNamespace(
        name=name,
        batchId=5,
        observedMetrics={} if rejected is None else {"rejected": {"rows": rejected}},
        stateOperators=[SimpleNamespace(numRowsDroppedByWatermark=count) for count in late],
    )
    return SimpleNamespace(progress=progress, runId=run_id)


def test_one_query_of_a_job_reports_what_all_of_them_left_out(capsys):
    report = Report("console")
    for name in ("console", "topic"):
        report.onQueryProgress(event(name, 2, [3, 4]))
        report.onQueryProgress(event(name, None, [1]))
        report.onQueryProgress(event(name, 0, [0]))
        report.onQueryProgress(event(name, None, []))
    assert capsys.readouterr().err.splitlines() == [
        "console batch 5: 2 unreadable, 7 too late",
        "console batch 5: 0 unreadable, 1 too late",
    ]


def test_the_report_ends_when_all_queries_have_ended():
    report = Report("console")
    report.onQueryTerminated(event("console", None, [], "first"))
    report.onQueryTerminated(event("topic", None, [], "second"))
    report.await_end(["first", "second"])
