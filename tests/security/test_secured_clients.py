"""A sample of third-party clients on TLS and SASL; tests/full/test_secured_clients_full.py has every combination."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.full.test_secured_clients_full import round_trip
from tests.harness.certificates import CertificateAuthority
from tests.security.client_matrix import KINDS, Form, Workshop
from tests.security.matrix_servers import MatrixServer, running

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
BY_NAME = {each.name: each for each in KINDS}
SAMPLE = [
    ("kcat", Form("SASL_SSL", "PLAIN")),
    ("confluent-kafka", Form("SASL_SSL", "SCRAM-SHA-512")),
    ("kcat", Form("SSL")),
    ("aiokafka", Form("SASL_SSL", "SCRAM-SHA-256")),
    ("aiokafka", Form("SASL_PLAINTEXT", "OAUTHBEARER")),
    ("confluent-kafka", Form("SASL_SSL", "OAUTHBEARER")),
    ("java-4.3.0", Form("SASL_SSL", "SCRAM-SHA-512")),
    ("java-0.10.1.1", Form("SASL_SSL", "PLAIN")),
    ("kafkajs", Form("SSL")),
    ("kafka-python-2.0.2", Form("SASL_SSL", "PLAIN")),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: CertificateAuthority) -> Iterator[MatrixServer]:
    with running(tmp_path_factory.mktemp("server"), authority, None) as server:
        yield server


@pytest.mark.parametrize(("name", "form"), SAMPLE, ids=[f"{name}-{form}" for name, form in SAMPLE])
def test_a_client_produces_and_consumes(
    server: MatrixServer,
    tmp_path_factory: pytest.TempPathFactory,
    authority: CertificateAuthority,
    name: str,
    form: Form,
) -> None:
    round_trip(server, Workshop(tmp_path_factory.mktemp("client"), authority, None), BY_NAME[name], form)
