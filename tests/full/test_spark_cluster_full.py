"""A standalone Spark cluster of two workers without kafkapy: the error, and the ways to ship kafkapy."""

from __future__ import annotations

import textwrap

import pytest

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.spark_cluster import StandaloneCluster
from tests.spark_environment import ROOT, bare_python, install_wheel, pack_environment, pack_sources

pytestmark = [pytest.mark.full, pytest.mark.timeout(2400)]

PROGRAM = """\
    import sys
    from pyspark.sql import SparkSession
    from kafkapy.spark import register

    spark = SparkSession.builder.getOrCreate()
    register(spark)
    source = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": "numbers"}
    rows = spark.read.format("kafkapy").options(**source).load()
    hosts = rows.groupBy("partition").count().collect()
    print("ROWS", sum(row["count"] for row in hosts), "TASKS", rows.rdd.getNumPartitions())
    sink = {"kafka.bootstrap.servers": sys.argv[1], "topic": sys.argv[2]}
    rows.select("key", "value").write.format("kafkapy").options(**sink).mode("append").save()
    print("COPIED", spark.read.format("kafkapy").options(**{**source, "subscribe": sys.argv[2]}).load().count())
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("broker"), {"num.partitions": "4"}) as made:
        with Producer(bootstrap_servers=made.bootstrap) as producer:
            for number in range(1000):
                producer.send("numbers", str(number), partition=number % 4)
        yield made


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "copy_numbers.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def submit(cluster, broker, program, tmp_path, *options, folders=(), **settings):
    """Runs a driver with kafkapy; the executors' Python has it only if one of `folders` contains it."""
    python = str(bare_python(tmp_path, *folders))
    environment = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": python}
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return cluster.submit(
        program,
        broker.bootstrap,
        tmp_path.name,
        options=options,
        environment=environment,
        settings={**named, **NO_RETRY},
    )


NO_RETRY = {"spark.task.maxFailures": "1", "spark.excludeOnFailure.enabled": "false"}


def test_an_executor_without_kafkapy_says_so(cluster, broker, program, tmp_path):
    done = submit(cluster, broker, program, tmp_path)
    assert done.returncode != 0
    assert "The data source kafkapy cannot run on this Spark executor" in done.stdout + done.stderr
    assert "--archives" in done.stdout + done.stderr


def test_an_executor_without_the_compiled_core_says_so(cluster, broker, program, tmp_path):
    done = submit(cluster, broker, program, tmp_path, "--py-files", str(pack_sources(tmp_path)))
    assert done.returncode != 0
    assert "kafkapy has a compiled core, which does not load from the files of --py-files" in done.stdout + done.stderr


def test_the_wheel_is_installed_for_the_executors(cluster, broker, program, tmp_path):
    done = submit(cluster, broker, program, tmp_path, folders=[install_wheel(tmp_path)])
    assert_copied(done)


def test_an_environment_is_shipped(cluster, broker, program, tmp_path):
    archive = f"{pack_environment(tmp_path)}#kafkapy-environment"
    settings = {"spark_executorEnv_PYTHONPATH": "kafkapy-environment"}
    done = submit(cluster, broker, program, tmp_path, "--archives", archive, **settings)
    assert_copied(done)


def assert_copied(done):
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-8000:]
    assert "ROWS 1000 TASKS 4" in done.stdout and "COPIED 1000" in done.stdout
