"""Fixtures of the tests of security: certificates, and Apache Kafka with every security protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.certificates import CertificateAuthority
from tests.peers import kafka_directory
from tests.security.secured_kafka import SecuredKafka


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory, authority: CertificateAuthority) -> Iterator[SecuredKafka]:
    directory = tmp_path_factory.mktemp("secured-kafka")
    with SecuredKafka(kafka_directory("4.3.0"), directory, authority) as kafka:
        yield kafka
