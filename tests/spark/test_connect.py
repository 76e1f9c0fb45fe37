"""A job on Spark Connect: a server in a process of its own, and a client without a JVM."""

from __future__ import annotations

import json

import pytest

from kafkapy.client import Producer
from tests.spark.test_hot_search import TOP_1, WINDOW_1
from tests.spark.test_submit import kafkapy
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import START
from tests.spark_connect import ConnectServer

pytestmark = pytest.mark.timeout(600)
START_MS = int(START.timestamp() * 1000)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ConnectServer(tmp_path_factory.mktemp("connect")) as made:
        yield made


@pytest.fixture(scope="module")
def searches(topics):
    """Returns a topic with the search terms of one window, and with a later heartbeat, which closes the window."""
    topic = topics.create()
    with Producer(bootstrap_servers=topics.bootstrap) as producer:
        for index, term in enumerate(WINDOW_1):
            producer.send(topic, term, timestamp=START_MS + index * 1000)
        producer.send(topic, None, timestamp=START_MS + 900_000)
    return topic


def test_a_job_prints_its_results_at_the_client_and_writes_each_once(server, topics, searches, tmp_path):
    output = topics.create()
    words = ["--bootstrap-server", topics.bootstrap, "--topic", searches, "--trigger", "available-now"]
    words += ["--checkpoint", str(tmp_path / "checkpoint"), "--sink", "console", "--sink", "topic"]
    words += ["--output-topic", output, "--time-zone", "Asia/Shanghai"]
    done = kafkapy("jobs", "submit", "--remote", server.url, "hot-search", *words)
    assert done.returncode == 0, done.stderr[:4000]
    lines = done.stdout.splitlines()
    assert lines[1] == "时间:[2017-05-01 20:05:00],热搜词如下:"
    assert lines[2:-1] == [f"{term}:{count}" for term, count in TOP_1]
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
