"""Fixtures of the tests that send the same requests to kafkapy and to Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka


@pytest.fixture(scope="module")
def ports(
    request: pytest.FixtureRequest, kafka_43: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, int]]:
    """Yields the ports of kafkapy and of Apache Kafka, which have the PROPERTIES of the test's module."""
    properties = request.module.PROPERTIES
    kafka = ApacheKafka(kafka_43, tmp_path_factory.mktemp("kafka"), heap=("-Xmx512M",), properties=properties)
    with BrokerProcess(tmp_path_factory.mktemp("kafkapy"), properties) as ours, kafka as theirs:
        yield ours.port, theirs.port
