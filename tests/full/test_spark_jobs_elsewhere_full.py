"""The bundled jobs on a standalone cluster of two workers, and on Spark 4.0 with Spark's own Kafka source."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.spark.test_hot_search import TOP_1, TOP_2, WINDOW_1, WINDOW_2
from tests.spark.test_stock_strategy import ROWS
from tests.spark.test_submit import SMALL, kafkapy
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import START
from tests.spark_cluster import StandaloneCluster
from tests.spark_connector import connector_jars, connector_python
from tests.spark_environment import ROOT, bare_python, pack_environment

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(1200)]
START_MS = int(START.timestamp() * 1000)
JOBS = ROOT / "spark_jobs"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """Starts a broker with the search terms of a published example, records that close their windows, and quotes."""
    properties = {"num.partitions": "3", "log.retention.ms": "-1"}  # the records carry timestamps of years ago
    with BrokerProcess(tmp_path_factory.mktemp("broker"), properties) as made:
        with Producer(bootstrap_servers=made.bootstrap) as producer:
            for start_s, terms in ((0, WINDOW_1), (300, WINDOW_2)):
                for index, term in enumerate(terms):
                    timestamp = START_MS + (start_s + index) * 1000
                    producer.send("words-search", term, partition=index % 3, timestamp=timestamp)
            for row in ROWS:
                producer.send("stock-quotes", row)
            producer.send("words-search", b"\xff\xfe", partition=0, timestamp=START_MS)
        with Producer(bootstrap_servers=made.bootstrap) as producer:
            for partition in range(3):
                producer.send("words-search", None, partition=partition, timestamp=START_MS + 900_000)
        yield made


def job_words(broker, job, output, directory):
    words = ["--bootstrap-server", broker.bootstrap, "--sink", "topic", "--output-topic", output]
    words += ["--shuffle-partitions", "2"]
    if job == "hot_search":
        words += ["--trigger", "available-now", "--checkpoint", str(directory / f"checkpoint-{output}")]
    elif job == "stock_alerts":
        words += ["--trigger", "available-now", "--checkpoint", str(directory / f"checkpoint-{output}"), "--days", "3"]
    else:
        words += ["--days", "3"]
    return words


def check(broker, job, output):
    rows = [json.loads(value) for _, value, _ in read_topic(broker.bootstrap, output)]
    if job == "hot_search":
        ranked = sorted(rows, key=lambda row: (row["window_end"], row["rank"]))
        assert [(row["term"], row["count"]) for row in ranked] == [*TOP_1, *TOP_2]
    elif job == "stock_alerts":
        kinds = {(row["stock_code"], row["kind"], row["price"]) for row in rows if row["trade_day"] == "2017-03-01"}
        assert kinds == {("000001", "new high", 9.55), ("600547", "new low", 36.6), ("600837", "new low", 15.6)}
    else:
        assert {row["stock_code"] for row in rows if row["is_new_high"]} == {"000001"}
        assert {row["stock_code"] for row in rows if row["is_new_low"]} == {"600547", "600837"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.mark.parametrize("job", ["hot_search", "stock_strategy"])
def test_a_cluster_runs_the_jobs_with_kafkapy_in_an_archive(cluster, broker, tmp_path, job):
    """Submits to the cluster instead of the master that the job of the published example names."""
    before = set(cluster.directory.glob("work-*/app-*"))
    archive = f"{pack_environment(tmp_path)}#kafkapy-environment"
    output = f"cluster-{job}"
    done = cluster.submit(
        JOBS / f"{job}.py",
        *job_words(broker, job, output, tmp_path),
        options=("--archives", archive),
        settings={"spark.executorEnv.PYTHONPATH": "kafkapy-environment"},
        environment={"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(bare_python(tmp_path))},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-8000:]
    assert set(cluster.directory.glob("work-*/app-*")) - before
    check(broker, job, output)


def test_a_cluster_takes_the_state_processors_of_a_job_with_it(cluster, broker, tmp_path):
    """Provides kafkapy and protobuf to the executors, and nothing of the job itself."""
    output = "cluster-stock_alerts"
    done = cluster.submit(
        JOBS / "stock_alerts.py",
        *job_words(broker, "stock_alerts", output, tmp_path),
        settings={"spark.executorEnv.PYTHONPATH": str(ROOT)},
        environment={"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-8000:]
    check(broker, "stock_alerts", output)


def test_dates_are_printed_in_the_time_zone_and_what_spark_was_given_stays(broker, tmp_path):
    spark = (*SMALL, "--conf", "spark.sql.shuffle.partitions=3")
    words = ("--trigger", "available-now", "--time-zone", "Asia/Shanghai", "--checkpoint", str(tmp_path / "checkpoint"))
    done = kafkapy("jobs", "submit", *spark, "hot_search", "--bootstrap-server", broker.bootstrap, *words)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "时间:[2017-05-01 20:05:00],热搜词如下:" in done.stdout.splitlines()
    assert "Py4J" not in done.stdout + done.stderr, "Spark called a program that was gone"
    assert '"spark.sql.shuffle.partitions":"3"' in (tmp_path / "checkpoint/console/offsets/0").read_text()


@pytest.mark.parametrize("source", ["kafka", "kafkapy"])
@pytest.mark.parametrize("job", ["hot_search", "stock_strategy"])
def test_spark_4_0_gives_the_same_answer_by_both_sources(broker, tmp_path, job, source):
    """Runs the job with Spark's own source and sink, for which it does not need kafkapy."""
    python = connector_python()
    output = f"connector-{source}-{job}"
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "PYTHON", "SPARK"))}
    environment = {**inherited, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    if source == "kafkapy":
        environment["PYTHONPATH"] = str(ROOT)
    spark = ["--master", "local[2]", "--conf", "spark.ui.enabled=false", "--driver-memory", "700m"]
    jars = ["--jars", ",".join(map(str, connector_jars()))]
    words = [*job_words(broker, job, output, tmp_path), "--source", source]
    command = [str(python.with_name("spark-submit")), *spark, *jars, str(JOBS / f"{job}.py"), *words]
    # Spark 4.0 reads everything available in one micro-batch of a Python source; the next batch closes its windows.
    for _ in range(2 if job == "hot_search" and source == "kafkapy" else 1):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-8000:]
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("words-search", None, partition=0, timestamp=START_MS + 901_000)
    check(broker, job, output)
