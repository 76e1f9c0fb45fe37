"""Kafka Streams programs in three instances, killed and started again: the results of kafkapy equal Apache Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.ecosystem.kafka_streams import compiled_programs
from tests.ecosystem.streams_run import PROPERTIES, results_on
from tests.peers import ApacheKafka


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_results_equal_those_on_apache_kafka(kafka_43: Path, tmp_path: Path) -> None:
    class_path = compiled_programs(tmp_path)
    # The session ends soon, so that the tasks of a killed instance move.
    properties = {
        **PROPERTIES,
        "group.streams.session.timeout.ms": "6000",
        "group.streams.min.session.timeout.ms": "6000",
        "group.streams.heartbeat.interval.ms": "1000",
        "group.streams.min.heartbeat.interval.ms": "1000",
        "group.streams.num.standby.replicas": "1",
    }
    results = []
    for server in (
        BrokerProcess(tmp_path / "kafkapy", properties),
        ApacheKafka(kafka_43, tmp_path / "kafka", properties=properties),
    ):
        server.directory.mkdir(exist_ok=True)
        with server:
            results.append(results_on(server, class_path, server.directory))
    assert results[0] == results[1]
