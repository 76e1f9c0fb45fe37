"""The data source and a job on Spark Connect: a server in a process of its own, and clients without a JVM."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kafkapy.client import Producer
from tests.spark.test_hot_search import TOP_1, WINDOW_1
from tests.spark.test_submit import kafkapy
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import START
from tests.spark_connect import ConnectServer
from tests.spark_session import ROOT

pytestmark = pytest.mark.timeout(600)
START_MS = int(START.timestamp() * 1000)
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


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ConnectServer(tmp_path_factory.mktemp("connect")) as made:
        yield made


@pytest.fixture(scope="module")
def searches(topics):
    """Returns the topic of a window of search terms, and of a heartbeat that closes it."""
    topic = topics.create()
    with Producer(bootstrap_servers=topics.bootstrap) as producer:
        for index, term in enumerate(WINDOW_1):
            producer.send(topic, term, timestamp=START_MS + index * 1000)
        producer.send(topic, None, timestamp=START_MS + 900_000)
    return topic


def test_a_program_reads_and_writes_in_batches_and_streams(server, topics, searches, tmp_path):
    batch, stream = topics.create(), topics.create()
    words = [server.url, topics.bootstrap, searches, batch, stream, str(tmp_path / "checkpoint")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert f"READ {len(WINDOW_1) + 1} 1" in done.stdout
    written = [[value for _, value, _ in read_topic(topics.bootstrap, topic)] for topic in (searches, batch, stream)]
    assert written[1] == written[2] == written[0]


def test_a_job_prints_its_results_at_the_client_and_writes_each_once(server, topics, searches, tmp_path):
    output = topics.create()
    words = ["--bootstrap-server", topics.bootstrap, "--topic", searches, "--trigger", "available-now"]
    words += ["--checkpoint", str(tmp_path / "checkpoint"), "--sink", "console", "--sink", "topic"]
    words += ["--output-topic", output, "--time-zone", "Asia/Shanghai"]
    for number in range(2):
        done = kafkapy("jobs", "submit", "--remote", server.url, "hot-search", *words)
        assert done.returncode == 0, done.stderr[-6000:]
        if number == 0:
            lines = done.stdout.splitlines()
            assert lines[1] == "时间:[2017-05-01 20:05:00],热搜词如下:"
            assert lines[2:-1] == [f"{term}:{count}" for term, count in TOP_1]
        else:
            assert done.stdout == ""
    rows = [json.loads(value) for _, value, _ in read_topic(topics.bootstrap, output)]
    assert [(row["term"], row["count"]) for row in sorted(rows, key=lambda row: row["rank"])] == TOP_1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--remote", "localhost"), "--remote localhost: the address of a Spark Connect server is sc://HOST"),
        (("--remote", "sc://127.0.0.1:1"), "--remote sc://127.0.0.1:1: "),
        (("--remote=sc://127.0.0.1:1", "--master", "local"), "--master is an option of the server"),
    ],
)
def test_a_wrong_server_is_an_error_in_one_line(words, message):
    done = kafkapy("jobs", "submit", *words, "hot-search")
    assert done.returncode != 0 and len(done.stderr.splitlines()) == 1
    assert message in done.stderr
