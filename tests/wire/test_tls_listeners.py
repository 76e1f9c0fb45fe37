"""TLS listeners of a running broker, compared with Apache Kafka's on the same certificates."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.broker_process import BrokerProcess
from tests.harness.certificates import CertificateAuthority, Identity, openssl
from tests.peers import ApacheKafka
from tests.ports import free_ports
from tests.reactor_harness import TIMEOUT, frame, receive_frame
from tests.security.token_brokers import eventually
from tests.server_process import ServerProcess
from tests.wire.test_tls_hostile import first_flight

API_VERSIONS = frame(b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff")
RECORDS = 3_000


@dataclass(frozen=True)
class Certificates:
    """An authority, the PEM key store of a broker, and clients with good and bad certificates."""

    authority: CertificateAuthority
    store: Path
    alice: Identity
    late: Identity
    foreign: Identity

    def client(self, identity: Identity | None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.certificate_pem.decode())
        context.maximum_version = version
        if identity is not None:
            context.load_cert_chain(identity.chain_file, identity.key_file)
        return context

    def properties(self, plain: int, encrypted: int, controller: int) -> dict[str, str]:
        return {
            "listeners": (
                f"PLAINTEXT://localhost:{plain},SSL://localhost:{encrypted},CONTROLLER://localhost:{controller}"
            ),
            "advertised.listeners": f"PLAINTEXT://localhost:{plain},SSL://localhost:{encrypted}",
            "controller.quorum.voters": f"1@localhost:{controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate_file),
            "listener.name.ssl.ssl.client.auth": "required",
        }


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    authority = CertificateAuthority(folder / "own")
    broker = authority.issue("broker")
    key = openssl("pkcs8", "-topk8", "-nocrypt", "-in", broker.key_file)
    store = folder / "store.pem"
    store.write_bytes(key.encode() + broker.chain_pem)
    foreign = CertificateAuthority(folder / "foreign", "Foreign").issue("mallory")
    return Certificates(authority, store, authority.issue("alice"), authority.issue("late", days=(-9, -2)), foreign)


@contextmanager
def served(
    folder: Path, certificates: Certificates, kafka: Path | None = None, **more: str
) -> Iterator[tuple[ServerProcess, int]]:
    """Starts Apache Kafka from the jars in `kafka`, or kafkapy, and yields it with the port of its TLS listener."""
    plain, encrypted, controller = free_ports(3)
    properties = certificates.properties(plain, encrypted, controller) | more
    server: ServerProcess
    if kafka is None:
        server = BrokerProcess(folder, properties, port=plain)
    else:
        server = ApacheKafka(kafka, folder, plain, properties=properties, heap=("-Xmx512M",))
    with server:
        yield server, encrypted


def raw_answer(port: int, data: bytes) -> bytes:
    """Sends bytes on a TCP connection and returns what the server sends until it closes the connection."""
    answer = b""
    with socket.create_connection(("localhost", port), TIMEOUT) as client:
        client.sendall(data)
        while part := client.recv(65536):
            answer += part
    return answer


def is_served(port: int, context: ssl.SSLContext) -> bool:
    """Returns whether a request is answered on a new connection, and the client's close_notify too."""
    with socket.create_connection(("localhost", port), TIMEOUT) as plain:
        try:
            client = context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
            client.sendall(API_VERSIONS)
            receive_frame(client)
        except (ssl.SSLError, ConnectionError):
            return False
        client.unwrap()
        client.close()
        return True


def behaviour(port: int, certificates: Certificates) -> dict[str, object]:
    """Returns what a client sees of a listener that requires certificates, by the kind of client."""
    hello = bytearray(first_flight(ssl.TLSVersion.TLSv1_2))
    hello[9:11] = b"\x03\x02"
    found: dict[str, object] = {
        "plaintext": raw_answer(port, API_VERSIONS).hex(),
        "http": raw_answer(port, b"GET / HTTP/1.1\r\n\r\n").hex(),
        "TLS 1.1": raw_answer(port, bytes(hello))[5:].hex(),  # the alert, without the version of its record
        "damaged hello": raw_answer(port, b"\x16\x03\x01\x00\x05abcde").hex(),
    }
    clients = {"none": None, "good": certificates.alice, "expired": certificates.late, "foreign": certificates.foreign}
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for name, identity in clients.items():
            found[f"{name} {version.name}"] = is_served(port, certificates.client(identity, version))
    other_cipher = certificates.client(certificates.alice, ssl.TLSVersion.TLSv1_2)
    other_cipher.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")  # the broker's key is not RSA
    with socket.create_connection(("localhost", port), TIMEOUT) as plain:
        with pytest.raises(ssl.SSLError) as refused:
            other_cipher.wrap_socket(plain, server_hostname="localhost")
        found["no common cipher"] = refused.value.reason
    return found


@pytest.mark.peer
@pytest.mark.timeout(300)
def test_clients_see_of_a_listener_what_apache_kafka_shows(
    tmp_path: Path, certificates: Certificates, kafka_43: Path
) -> None:
    with served(tmp_path / "kafka", certificates, kafka_43) as (_, port):
        expected = behaviour(port, certificates)
    with served(tmp_path / "kafkapy", certificates) as (_, port):
        assert behaviour(port, certificates) == expected
    assert expected["good TLSv1_3"] is True
    assert expected["none TLSv1_3"] is False


def test_failed_handshakes_are_logged_with_their_reason(tmp_path: Path, certificates: Certificates) -> None:
    reasons = {
        "none": "peer did not return a certificate",
        "expired": "certificate verify failed: certificate has expired in the certificate of /CN=late",
        "foreign": (
            "certificate verify failed: unable to get local issuer certificate in the certificate of /CN=mallory"
        ),
    }
    with served(tmp_path, certificates) as (server, port):
        behaviour(port, certificates)
        for reason in reasons.values():
            expected = f"(SSL handshake failed: {reason})"
            eventually(lambda expected=expected: expected in server.log_path.read_text())
        assert "Failed authentication with /127.0.0.1" in server.log_path.read_text()


def test_records_pass_the_gate_of_a_tls_listener(tmp_path: Path, certificates: Certificates) -> None:
    from confluent_kafka import Consumer, Producer

    (metrics,) = free_ports(1)
    properties = {"kafkapy.metrics.listener": f"localhost:{metrics}", "num.partitions": "1"}

    def gated_since(before: float) -> float:
        """Waits until the gate has served more requests than `before`, and returns their number."""
        end = time.monotonic() + TIMEOUT
        while True:
            with urlopen(f"http://localhost:{metrics}/metrics") as page:
                lines = page.read().decode().splitlines()
            count = float(next(line for line in lines if line.startswith("kafkapy_requests_gated_total ")).split()[1])
            if count > before:
                return count
            assert time.monotonic() < end, f"the gate served {count} requests"
            time.sleep(0.05)

    with served(tmp_path, certificates, **properties) as (_, port):
        client = {
            "bootstrap.servers": f"localhost:{port}",
            "security.protocol": "ssl",
            "ssl.ca.location": str(certificates.authority.certificate_file),
            "ssl.certificate.location": str(certificates.alice.chain_file),
            "ssl.key.location": str(certificates.alice.key_file),
        }
        producer = Producer({**client, "linger.ms": 1})
        values = [b"%06d" % number * 200 for number in range(RECORDS)]
        producer.produce("data", b"the first record creates the topic")
        assert producer.flush(TIMEOUT) == 0
        before = gated_since(-1)
        for value in values:
            producer.produce("data", value)
        assert producer.flush(TIMEOUT) == 0
        produced = gated_since(before)
        consumer = Consumer({**client, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["data"])
        received: list[bytes] = []
        while len(received) <= RECORDS:
            received += [message.value() for message in consumer.consume(500, TIMEOUT)]
        consumer.close()
        assert received[1:] == values
        gated_since(produced)
