"""The listener for ZooKeeper's clients with TLS: clients of Python and Java with and without certificates, and clients
that send no or half a handshake."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions

from kafkapy.security.tls.authority import CLIENT_AUTH, SERVER_AUTH
from tests.certificates import SERVER_NAME, authority, client_certificate, server_certificate, write_pem
from tests.clients.legacy.installation import jars_of, java_command
from tests.crash.refusals import assert_refused
from tests.harness.quorum_nodes import wait_until
from tests.ports import free_port
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.real_zookeeper import POM, RELEASE

SUBJECT = "CN=alice,OU=clients,O=Test"
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns a folder with the stores: ca.pem, alice.pem with key and certificate, and a file for each of these
    two."""
    folder = tmp_path_factory.mktemp("stores")
    (folder / "ca.pem").write_bytes(authority().certificate)
    write_pem(folder, client_certificate(), "alice")
    (folder / "alice.pem").write_bytes(client_certificate().private_key + client_certificate().certificate)
    write_server_store(folder, server_certificate())
    return folder


def write_server_store(folder, issued):
    (folder / "server.pem").write_bytes(issued.private_key + issued.certificate)


@contextmanager
def tls_broker(directory, folder, **properties):
    prefix = "listener_name_zookeeper_ssl"
    settings = {
        "zookeeper_listener_security_protocol": "SSL",
        f"{prefix}_keystore_type": "PEM",
        f"{prefix}_keystore_location": folder / "server.pem",
        f"{prefix}_truststore_type": "PEM",
        f"{prefix}_truststore_location": folder / "ca.pem",
        f"{prefix}_client_auth": "requested",
    }
    with ListeningBroker(directory, **{**settings, **properties}) as broker:
        yield broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory, folder):
    with tls_broker(tmp_path_factory.mktemp("broker"), folder) as broker:
        with connected(broker, folder):
            pass  # the listener serves now
        yield broker


@contextmanager
def connected(broker, folder, user=None, **options):
    """Yields a connected client of kazoo, with the certificate of `user` if it is set."""
    if user is not None:
        options |= {"certfile": str(folder / f"{user}.crt"), "keyfile": str(folder / f"{user}.key")}
    client = KazooClient(broker.zookeeper, use_ssl=True, ca=str(folder / "ca.pem"), check_hostname=True, **options)
    try:
        client.start(timeout=TIMEOUT_S)
        yield client
    finally:
        client.stop()
        client.close()


def java_shell(broker, folder, *command, user=None):
    """Runs a command of ZooKeeper's shell with TLS, and returns its output."""
    jars = jars_of(POM, f"zookeeper-{RELEASE}", f"-Dzookeeper.version={RELEASE}")
    options = {
        "clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "client.secure": "true",
        "ssl.trustStore.location": folder / "ca.pem",
    }
    if user is not None:
        options["ssl.keyStore.location"] = folder / f"{user}.pem"
    words = [f"-Dzookeeper.{key}={value}" for key, value in options.items()]
    main = "org.apache.zookeeper.ZooKeeperMain"
    done = subprocess.run(
        [*java_command(), *words, "-cp", f"{jars}/*", main, "-server", broker.zookeeper, *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_client_without_certificate_reads_writes_and_watches(broker, folder):
    with connected(broker, folder) as client, connected(broker, folder) as other:
        seen = []
        client.create("/plain", bytes(900_000))
        assert other.get("/plain", watch=seen.append)[0] == bytes(900_000)
        client.set("/plain", b"x")
        wait_until(lambda: seen, "no event arrived")
        assert seen[0].path == "/plain"


def test_the_subject_of_a_certificate_is_an_identity(broker, folder):
    with connected(broker, folder, "alice") as alice, connected(broker, folder) as nobody:
        alice.create("/mine", b"secret", acl=[ACL(Permissions.ALL, Id("x509", SUBJECT))])
        alice.create("/own", b"secret", acl=[ACL(Permissions.ALL, Id("auth", ""))])
        for path in ("/mine", "/own"):
            assert alice.get(path)[0] == b"secret"
            assert alice.get_acls(path)[0] == [ACL(Permissions.ALL, Id("x509", SUBJECT))]
            with pytest.raises(NoAuthError):
                nobody.get(path)


def test_a_listener_may_require_certificates(tmp_path, folder):
    with tls_broker(tmp_path, folder, listener_name_zookeeper_ssl_client_auth="required") as broker:
        with connected(broker, folder, "alice") as client:
            client.create("/a", acl=OPEN_ACL_UNSAFE)
        with pytest.raises(ssl.SSLError), tls_socket(broker, folder) as connection:
            connection.recv(1)  # with TLS 1.3 the client's part of the handshake ends before the server refuses it
        wait_until(lambda: "ended without a request: TLS failed: " in broker.log(), "the log does not show the failure")


@contextmanager
def tls_socket(broker, folder):
    """Yields a TLS socket without a client certificate, after the client's part of the handshake."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    with (
        socket.create_connection(address(broker), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        yield connection


@pytest.mark.peer
def test_the_java_client_connects_with_and_without_a_certificate(broker, folder):
    with connected(broker, folder) as client:
        client.create("/java", b"data")
        assert "\ndata\n" in java_shell(broker, folder, "get", "/java")
        shown = java_shell(broker, folder, "whoami", user="alice")
        assert f"x509: {SUBJECT}" in shown, shown
        assert "x509" not in java_shell(broker, folder, "whoami")


def test_a_new_certificate_is_presented_after_a_reload(broker, folder):
    def certificate():
        with tls_socket(broker, folder) as connection:
            return connection.getpeercert(binary_form=True)

    before = certificate()
    names = {"hosts": ("localhost", "127.0.0.1"), "usages": (SERVER_AUTH, CLIENT_AUTH)}
    write_server_store(folder, authority().issue(SERVER_NAME, 30, **names))
    broker.process.send_signal(signal.SIGHUP)
    wait_until(lambda: certificate() != before, "the old certificate is presented")


def address(broker):
    host, _, port = broker.zookeeper.rpartition(":")
    return host, int(port)


@pytest.mark.parametrize(
    "sent", [b"ruok", b"\0\0\0\x2c" + bytes(44), b"\x16\x03\x01\x00\x05hello", b"GET / HTTP/1.1\r\n"]
)
def test_a_client_that_does_not_speak_tls_is_disconnected(broker, folder, sent):
    with socket.create_connection(address(broker), TIMEOUT_S) as plain:
        plain.sendall(sent)
        received = b""
        while piece := plain.recv(1000):
            received += piece
    assert received[:1] == b"\x15"  # an alert
    with connected(broker, folder) as client:
        assert client.exists("/no") is None


@pytest.mark.parametrize(
    "sent", [b"ruok", b"\xff\xff\xff\xff", b"\0\0\0\x04" + bytes(4)], ids=["word", "size", "short"]
)
def test_what_is_no_connect_request_within_tls_ends_the_connection(broker, folder, sent):
    with tls_socket(broker, folder) as connection:
        connection.sendall(sent)
        assert connection.recv(1) == b""


def test_a_stalled_handshake_does_not_delay_other_clients(broker, folder):
    hello = ssl.MemoryBIO()
    stalled = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        stalled.do_handshake()
    with socket.create_connection(address(broker), TIMEOUT_S) as silent, silent.dup() as half:
        half.sendall(hello.read()[:50])
        with connected(broker, folder) as client:
            assert client.exists("/no") is None


def test_a_listener_without_certificate_prevents_the_start(tmp_path):
    broker = ListeningBroker(tmp_path, zookeeper_listener_security_protocol="SSL")
    assert_refused(broker, "listener.name.zookeeper.ssl.keystore")


def test_a_broker_listener_of_the_same_name_prevents_the_start(tmp_path):
    broker = ListeningBroker(
        tmp_path,
        listeners=f"ZOOKEEPER://localhost:{free_port()}",
        listener_security_protocol_map="ZOOKEEPER:PLAINTEXT",
    )
    assert_refused(broker, "The listener ZOOKEEPER of the key listeners")
