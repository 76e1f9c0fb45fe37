"""The data source on Spark Connect, and the bundled jobs, which print there what they print in local mode."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.spark.test_submit import SMALL, kafkapy
from tests.spark.topic_content import read_topic
from tests.spark_connect import ConnectServer
from tests.spark_session import ROOT

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]
DATA = {
    "search-terms": ("words-search", 3000),
    "quotes": ("stock-quotes", 2000),
    "accesses": ("access-log", 2000),
    "access-log": ("account-access-log", 500),
    "server-metrics": ("server-metrics", 500),
}
START_MS = 1_488_360_600_000
PROGRAM = """
import sys
from pyspark.sql import SparkSession
from kafkapy.spark import register

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
register(spark)
servers = {"kafka.bootstrap.servers": sys.argv[2]}
rows = spark.read.format("kafkapy").options(**servers, subscribe=sys.argv[3]).load()
print("READ", rows.count(), rows.where("value is null").count())
rows.select("key", "value").write.format("kafkapy").options(**servers, topic=sys.argv[4]).mode("append").save()
stream = spark.readStream.format("kafkapy").options(**servers, subscribe=sys.argv[3], startingOffsets="earliest").load()
exactly_once = {"topic": sys.argv[5], "kafka.transactional.id": "copy", "checkpointLocation": sys.argv[6]}
writer = stream.select("key", "value").writeStream.format("kafkapy").options(**servers, **exactly_once)
writer.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""
STREAM = ("--trigger", "available-now")
# The options of each run.
RUNS = {
    "hot-search": STREAM,
    "trending-search": STREAM,
    "trending-search-approximate": (*STREAM, "--approximate", "20"),
    "word-count": (*STREAM, "--topic", "words-search"),
    "ip-blacklist": (*STREAM, "--threshold", "2"),
    "access-log": STREAM,
    "server-metrics": STREAM,
    "stock-alerts": (*STREAM, "--days", "3"),
    "stock-statistics": STREAM,
    "stock-strategy": ("--days", "3"),
    "stock-backtest": ("--days", "3"),
    "stream-table": (*STREAM, "--topic", "words-search"),
    "stream-joins": (*STREAM, "--topic", "left", "--right-topic", "right", "--join", "tables"),
    "envelope": (*STREAM, "--topic", "envelopes"),
    "out-of-order": (*STREAM, "--topic", "stock-quotes"),
    "click-enrichment": (
        *STREAM,
        "--topic",
        "stock-quotes",
        "--profile-topic",
        "access-log",
        "--search-topic",
        "words-search",
    ),
}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory):
    """Starts a broker with the sample data of the jobs, one partition each, so that the order is always the same."""
    directory = tmp_path_factory.mktemp("broker")
    with BrokerProcess(directory, {"num.partitions": "1", "log.retention.ms": "-1"}) as made:
        for name, (_, count) in DATA.items():
            words = ["--data", name, "--num-records", str(count), "--rate", "0", "--seed", "7"]
            words += ["--start-time", "2017-03-01T09:30:00+00:00", "--step-ms", "1000"]
            command = [sys.executable, "-m", "kafkapy", "jobs", "generate", "--bootstrap-server", made.bootstrap]
            subprocess.run([*command, *words], cwd=ROOT, check=True, timeout=120)
        with Producer(bootstrap_servers=made.bootstrap) as producer:
            for number in range(100):
                key, timestamp_ms = f"k{number % 7}", START_MS + 1000 * number
                for topic in ("left", "right"):
                    producer.send(topic, f"{topic}-{number}", key, timestamp=timestamp_ms)
                producer.send("envelopes", f'{{"schema":null,"payload":{{"number":{number}}}}}')
        yield made.bootstrap


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ConnectServer(tmp_path_factory.mktemp("connect")) as made:
        yield made


def output(spark, name, bootstrap):
    job = name.removesuffix("-approximate")
    words = ("--bootstrap-server", bootstrap, "--time-zone", "UTC", "--shuffle-partitions", "1", *RUNS[name])
    done = kafkapy("jobs", "submit", *spark, job, *words)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return sorted(done.stdout.splitlines())


@pytest.mark.parametrize("name", RUNS)
def test_a_job_prints_the_same_as_in_local_mode(server, bootstrap, name):
    on_connect = output(("--remote", server.url), name, bootstrap)
    assert on_connect == output(SMALL, name, bootstrap)
    assert on_connect, "the job has no results"


def test_statements_print_rows_as_json(server, bootstrap):
    words = ("--bootstrap-server", bootstrap, *STREAM, "--topic", "server-metrics", "--schema", "host string")
    words += ("--statement", "select 'row' as kind from dyl_test limit 3")
    done = kafkapy("jobs", "submit", "--remote", server.url, "sql-statements", *words)
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.splitlines() == ['{"kind": "row"}'] * 3


def test_an_archive_is_written_by_the_server(server, bootstrap, tmp_path):
    words = ("--bootstrap-server", bootstrap, *STREAM, "--output-path", str(tmp_path / "archive"))
    done = kafkapy("jobs", "submit", "--remote", server.url, "archive", *words)
    assert done.returncode == 0, done.stderr[-6000:]
    assert list(tmp_path.glob("archive/hour=*/*.parquet"))


def test_a_program_reads_and_writes_in_batches_and_streams(server, bootstrap, tmp_path):
    words = [server.url, bootstrap, "words-search", "batch", "stream", str(tmp_path / "checkpoint")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    assert "READ 3000 0" in done.stdout
    written = [[value for _, value, _ in read_topic(bootstrap, topic)] for topic in ("words-search", "batch", "stream")]
    assert written[1] == written[2] == written[0] != []


def test_a_second_run_of_a_job_writes_nothing_again(server, bootstrap, tmp_path):
    words = ("--bootstrap-server", bootstrap, *STREAM, "--checkpoint", str(tmp_path / "checkpoint"))
    words += ("--sink", "topic", "--output-topic", "hot")
    counts = []
    for _ in range(2):
        done = kafkapy("jobs", "submit", "--remote", server.url, "hot-search", *words)
        assert done.returncode == 0, done.stderr[:4000]
        counts.append(len(read_topic(bootstrap, "hot")))
    assert counts[0] == counts[1] > 0
