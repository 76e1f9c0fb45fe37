"""Every third-party client in every form of TLS and SASL that it supports, with kafkapy and with Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.legacy.program_client import ProgramClient
from tests.clients.records import make_records
from tests.harness.certificates import CertificateAuthority
from tests.kerberos import KerberosRealm
from tests.security.client_matrix import FORMS, KINDS, USER, Form, Kind, Workshop
from tests.security.matrix_servers import MatrixServer, running

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(300)]
RECORDS = 20
TOO_OLD_FOR_KAFKA_4 = ("java-0.10.1.1",)
CASES = [pytest.param(kind, form, id=f"{kind.name}-{form}") for kind in KINDS for form in FORMS if kind.supports(form)]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosRealm]:
    with KerberosRealm(tmp_path_factory.mktemp("realm")) as realm, pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment(realm.log_in(USER)).items():
            patch.setenv(name, value)  # for the clients that are started by this process
        yield realm


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def workshop(
    tmp_path_factory: pytest.TempPathFactory, authority: CertificateAuthority, realm: KerberosRealm
) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("clients"), authority, realm)


@pytest.fixture(scope="module", params=["kafkapy", "apache"])
def server(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    authority: CertificateAuthority,
    realm: KerberosRealm,
) -> Iterator[MatrixServer]:
    directory = tmp_path_factory.mktemp(request.param)
    with running(directory, authority, realm, is_apache=request.param == "apache") as server:
        yield server


def round_trip(server: MatrixServer, workshop: Workshop, kind: Kind, form: Form) -> None:
    """Writes and reads records with one client, each on new connections."""
    sent = [each._replace(headers=()) for each in make_records(RECORDS, 1, text=True)]
    topic = f"{kind.name}-{form}"
    server.new_topic(topic)
    client: Any = workshop.make(kind, form)
    try:
        client.produce(server.address(form), topic, "none", sent)
        received = client.consume(server.address(form), topic, 1, RECORDS)
    finally:
        if isinstance(client, ProgramClient):
            client.close()
    assert [(each.key, each.value) for each in received] == [(each.key, each.value) for each in sent]


@pytest.mark.parametrize(("kind", "form"), CASES)
def test_a_client_produces_and_consumes(server: MatrixServer, workshop: Workshop, kind: Kind, form: Form) -> None:
    if server.is_apache and kind.name in TOO_OLD_FOR_KAFKA_4:
        pytest.skip("Apache Kafka 4 does not serve the versions of Produce and Fetch of this client")
    round_trip(server, workshop, kind, form)
