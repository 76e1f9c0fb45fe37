"""Every bundled job wherever Spark runs, on kafkapy and on Apache Kafka: each result is compared with the known one.

The places are the oldest supported release of Spark in local mode, the newest one in local mode, on a standalone
cluster of two workers and on Spark Connect, and the newest one in local mode with Apache Kafka as the broker. One
session runs all jobs of a place, except on Spark Connect.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.tools.job_catalog import job_paths
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.spark.job_cases import CASES, NEEDS_NEWER, Case, Place, Runs, job_of
from tests.spark.test_submit import JAVA, SMALL
from tests.spark_cluster import StandaloneCluster
from tests.spark_connect import ConnectServer
from tests.spark_connector import connector_variables
from tests.spark_session import ROOT

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(3600)]
PROPERTIES = {"log.retention.ms": "-1"}  # the records carry timestamps of years ago
PLACES = ("spark-4.0", "newest", "cluster", "connect", "apache-kafka")


@contextlib.contextmanager
def broker(place: str, directory: Path) -> Iterator[str]:
    if place == "apache-kafka":
        kafka = ApacheKafka(kafka_directory("4.3.0"), directory, properties=PROPERTIES, heap=("-Xmx512M",))
        with kafka as started:
            yield started.bootstrap
    else:
        with BrokerProcess(directory, PROPERTIES) as process:
            yield process.bootstrap


@contextlib.contextmanager
def spark(place: str, directory: Path) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    """Starts what a place needs; yields the options of `kafkapy jobs submit` and the environment."""
    if place == "cluster":
        with StandaloneCluster(directory) as cluster:
            settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
            # The executors get kafkapy and nothing of the jobs.
            settings["spark.executorEnv.PYTHONPATH"] = str(ROOT)
            words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
            yield ("--master", cluster.url, "--driver-memory", "512m", *JAVA, *words), {}
    elif place == "connect":
        with ConnectServer(directory) as server:
            yield ("--remote", server.url), {}
    else:
        yield SMALL, connector_variables() if place == "spark-4.0" else {}


@pytest.fixture(scope="module", params=PLACES)
def place(request: Any, tmp_path_factory: Any) -> Iterator[tuple[Place, Runs]]:
    """Runs all jobs at a place."""
    name = request.param
    directory = tmp_path_factory.mktemp(name)
    is_old = name == "spark-4.0"
    with broker(name, directory / "broker") as bootstrap, spark(name, directory) as (options, environment):
        made = Place(
            options, environment, bootstrap,
            is_remote=name == "connect", lacks_state_processors=is_old, closes_windows_later=is_old,
        )  # fmt: skip
        yield made, Runs(made, directory)


@pytest.mark.parametrize("name", CASES)
def test_a_job_has_the_known_result(place: tuple[Place, Runs], name: str) -> None:
    case: Case = CASES[name]
    where, runs = place
    if where.lacks_state_processors and case.has_state_processor:
        ended = runs.results[name]
        assert (ended.status, ended.output, ended.errors.splitlines()) == (1, "", [NEEDS_NEWER])
    else:
        assert runs.result_of(name) == sorted(case.result)


def test_every_bundled_job_is_a_case() -> None:
    assert {job_of(name) for name in CASES} == set(job_paths())
