"""A registry with TLS, users and short limits, and clients that are slow, unfinished, unknown or misconfigured."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl

import pytest

from kafkapy.client.schema import RegistryClient, RegistryFailure, Schema
from kafkapy.http.passwords import hash_password
from kafkapy.registry.command import main
from tests.certificates import authority, server_certificate, write_pem
from tests.http_process import RegistryProcess

USER = base64.b64encode(b"alice:secret").decode()


@pytest.fixture(scope="module")
def secured(broker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("secured")
    chain, key = write_pem(folder, server_certificate(), "server")
    both = folder / "server-both.pem"
    both.write_text(key.read_text() + chain.read_text())
    users = folder / "users"
    users.write_text(f"alice:{hash_password('secret')}\n")
    trusted = folder / "ca.pem"
    trusted.write_bytes(authority().certificate)
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "authentication.method": "BASIC",
        "authentication.users.file": str(users),
        "http.body.timeout.ms": "500",
        "http.head.timeout.ms": "500",
        "http.max.body.bytes": "1000",
        "kafkastore.topic": "_secured",
        "schema.registry.group.id": "secured",
    }
    file = folder / "registry.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    with RegistryProcess(folder, broker.bootstrap, "--config", str(file), scheme="https") as running:
        yield running


@pytest.fixture
def tls():
    return ssl.create_default_context(cadata=authority().certificate.decode())


@pytest.fixture
def connection(secured, tls):
    with (
        socket.create_connection(("127.0.0.1", secured.port), timeout=30) as plain,
        tls.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        yield secure


def answer_of(connection):
    found = b""
    with contextlib.suppress(ssl.SSLEOFError, ConnectionResetError):
        while part := connection.recv(4096):
            found += part
    return found


def test_a_user_with_the_password_registers_over_tls(secured, tls):
    client = RegistryClient(f"https://localhost:{secured.port}", user="alice", password="secret", tls=tls)
    assert client.register("orders", Schema('"string"')).id == 1
    assert RegistryClient(f"https://alice:secret@localhost:{secured.port}", tls=tls).subjects() == ["orders"]


@pytest.mark.parametrize("user", ["", "alice:wrong", "bob:secret"])
def test_an_unknown_user_is_refused(secured, tls, user):
    name, _, password = user.partition(":")
    client = RegistryClient(f"https://localhost:{secured.port}", user=name, password=password, tls=tls)
    with pytest.raises(RegistryFailure, match="Unauthorized") as refused:
        client.subjects()
    assert refused.value.status == 401


def test_a_body_that_does_not_arrive_is_refused(connection):
    head = f"POST /subjects/a/versions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {USER}\r\n"
    connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    found = answer_of(connection)
    assert found.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive within 0.5 seconds" in found


def test_a_body_without_length_that_is_too_large_is_refused(connection):
    head = f"POST /subjects/a/versions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {USER}\r\n"
    connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n5dc\r\n{'x' * 1500}\r\n".encode())
    assert answer_of(connection).startswith(b"HTTP/1.1 413 ")


def test_a_head_that_does_not_end_is_disconnected(connection):
    connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
    assert answer_of(connection) == b""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--property", "kafkastore.topci=x"), "did you mean kafkastore.topic?"),
        (("--property", "schema.compatibility.level=SIDEWARD"), "accepted are NONE, BACKWARD"),
        (("--property", "http.max.body.bytes=none"), "a whole number from 1 is accepted"),
        (("--property", "authentication.method=BASIC"), "needs authentication.users.file"),
        (("--listener", "ftp://localhost:1"), "http://HOST:PORT"),
        (("--property", "kafkastore.topic"), "key=value is expected"),
    ],
)
def test_a_wrong_configuration_is_refused_in_one_line(broker, capsys, arguments, reason):
    assert main(["--bootstrap-server", broker.bootstrap, *arguments]) == 1
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
