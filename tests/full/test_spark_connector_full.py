"""Spark's own Kafka source and sink on kafkapy: the same jobs and results as through our data source."""

from __future__ import annotations

import pytest

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.spark_connector import run_in_connector_environment

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(1200)]


def test_the_same_jobs_through_both(tmp_path):
    words = ["高考", "kafka 实战", "", "Ω", "x" * 2000]
    properties = {"num.partitions": "3"}
    with BrokerProcess(tmp_path / "kafkapy", properties) as broker:
        with Producer(bootstrap_servers=broker.bootstrap, compression_type="lz4") as producer:
            for number in range(5000):
                headers = [("n", str(number).encode())] if number % 3 == 0 else None
                key = None if number % 4 == 0 else f"k{number % 11}"
                value = None if number % 50 == 0 else words[number % 5]
                producer.send("words", value, key, timestamp=1_700_000_000_000 + number, headers=headers)
        found = run_in_connector_environment("tests.spark_connector_jobs", broker.bootstrap, "words")
    assert found["kafka"]["batch"]["rows"] == found["kafka"]["stream"]["rows"] == 5000
    assert found["kafkapy"] == found["kafka"]
