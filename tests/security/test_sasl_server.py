"""The authentication of clients by SASL: each order of requests has the same outcome here and in Apache Kafka."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.api_client import request_bytes
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.ports import free_ports
from tests.reactor_harness import frame
from tests.sasl_client import CLOSED, SaslConnection, plain_token
from tests.server_process import ServerProcess

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
USERS = 'user_alice="alice-secret" user_bob="bob-secret"'
LARGEST_TOKEN = 524_288


class Secured:
    """A running broker with a listener SASL, and a listener SESSION whose sessions last 1.5 seconds."""

    def __init__(self, process: ServerProcess, sasl_port: int, session_port: int) -> None:
        self.process = process
        self.sasl_port = sasl_port
        self.session_port = session_port

    def connect(self) -> SaslConnection:
        return SaslConnection(self.sasl_port)

    def connect_to_session(self) -> SaslConnection:
        return SaslConnection(self.session_port)


def secured_properties(port: int, sasl_port: int, session_port: int) -> dict[str, str]:
    listeners = f"PLAINTEXT://localhost:{port},SASL://localhost:{sasl_port},SESSION://localhost:{session_port}"
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,SESSION:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN} {USERS};",
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
        "listener.name.session.plain.sasl.jaas.config": f"{PLAIN} {USERS};",
        "listener.name.session.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
        "listener.name.session.plain.connections.max.reauth.ms": "1500",
    }


@pytest.fixture(scope="module", params=["kafkapy", pytest.param("apache", marks=pytest.mark.peer)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    port, sasl_port, session_port = free_ports(3)
    directory: Path = tmp_path_factory.mktemp(request.param)
    properties = secured_properties(port, sasl_port, session_port)
    process: ServerProcess
    if request.param == "kafkapy":
        process = BrokerProcess(directory, properties, port=port)
    else:
        process = ApacheKafka(kafka_directory("4.3.0"), directory, port, properties=properties)
        controller = f",CONTROLLER://localhost:{process.controller_port}"
        text = process.config.read_text().replace(f"listeners={properties['listeners']}\n",
                                                  f"listeners={properties['listeners']}{controller}\n", 1)  # fmt: skip
        process.config.write_text(text)
    with process:
        yield Secured(process, sasl_port, session_port)


# -- a good order ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_with_the_right_password_is_served(server: Secured, version: int) -> None:
    with server.connect() as client:
        assert client.versions().error_code == 0
        shaken = client.handshake("PLAIN")
        assert (shaken.error_code, list(shaken.mechanisms)) == (0, ["PLAIN", "SCRAM-SHA-256"])
        answer = client.authenticate(plain_token("alice", "alice-secret"), version)
        assert (answer.error_code, answer.error_message, bytes(answer.auth_bytes)) == (0, "", b"")
        assert answer.session_lifetime_ms == 0
        assert client.metadata().brokers


def test_the_versions_of_apis_need_not_be_asked_for(server: Secured) -> None:
    with server.connect() as client:
        assert client.log_in("bob", "bob-secret").error_code == 0
        assert client.metadata().brokers


def test_raw_tokens_follow_the_handshake_of_version_0(server: Secured) -> None:
    with server.connect() as client:
        assert client.handshake("PLAIN", version=0).error_code == 0
        assert client.raw_token(plain_token("alice", "alice-secret")) == b""
        assert client.metadata().brokers


def test_requests_that_were_sent_ahead_are_answered_in_order(server: Secured) -> None:
    with server.connect() as client:
        handshake = request_bytes(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        token = SaslAuthenticateRequest(auth_bytes=plain_token("alice", "alice-secret"))
        metadata = request_bytes(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        frames = (handshake, request_bytes(ApiKey.SASL_AUTHENTICATE, 2, token), metadata)
        client.socket.sendall(b"".join(map(frame, frames)))
        assert client.read(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeResponse).error_code == 0
        assert client.read(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateResponse).error_code == 0
        assert client.read(ApiKey.METADATA, 9, MetadataResponse).brokers


def test_an_unknown_version_of_api_versions_is_answered_and_may_be_repeated(server: Secured) -> None:
    with server.connect() as client:
        assert client.versions(99).error_code == Error.UNSUPPORTED_VERSION
        assert client.versions(99).error_code == Error.UNSUPPORTED_VERSION
        assert client.versions(3).error_code == 0
        assert client.log_in("alice", "alice-secret").error_code == 0


def test_a_bad_software_name_is_refused_and_the_client_may_ask_again(server: Secured) -> None:
    with server.connect() as client:
        assert client.versions(3, software="-bad-").error_code == Error.INVALID_REQUEST
        assert client.versions(3).error_code == 0
        assert client.log_in("alice", "alice-secret").error_code == 0


# -- a wrong order -----------------------------------------------------------------------------------------------------


def test_the_versions_may_not_be_asked_for_twice(server: Secured) -> None:
    with server.connect() as client:
        assert client.versions().error_code == 0
        assert client.versions() == CLOSED


def test_the_versions_may_not_be_asked_for_after_the_handshake(server: Secured) -> None:
    with server.connect() as client:
        assert client.handshake("PLAIN", version=0).error_code == 0
        assert client.versions() == CLOSED


def test_another_request_before_the_handshake_closes_the_connection(server: Secured) -> None:
    with server.connect() as client:
        assert client.metadata() == CLOSED


def test_a_token_before_the_handshake_closes_the_connection(server: Secured) -> None:
    with server.connect() as client:
        assert client.authenticate(plain_token("alice", "alice-secret")) == CLOSED


def test_a_raw_token_before_the_handshake_closes_the_connection(server: Secured) -> None:
    with server.connect() as client:
        assert client.raw_token(b"\x60\x82\x02\x6f\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02") == CLOSED


def test_a_mechanism_that_is_not_enabled_is_refused_with_the_enabled_ones(server: Secured) -> None:
    for version in (0, 1):
        with server.connect() as client:
            answer = client.handshake("GSSAPI", version)
            assert answer.error_code == Error.UNSUPPORTED_SASL_MECHANISM
            assert list(answer.mechanisms) == ["PLAIN", "SCRAM-SHA-256"]
            assert client.is_closed


def test_another_request_instead_of_a_token_gets_its_own_error(server: Secured) -> None:
    with server.connect() as client:
        assert client.handshake("PLAIN").error_code == 0
        answer = client.metadata()
        assert (list(answer.brokers), list(answer.topics)) == ([], [])
        assert client.is_closed


def test_a_second_handshake_instead_of_a_token_gets_an_error(server: Secured) -> None:
    with server.connect() as client:
        assert client.handshake("PLAIN").error_code == 0
        assert client.handshake("PLAIN").error_code == Error.ILLEGAL_SASL_STATE
        assert client.is_closed


@pytest.mark.parametrize("prefix", [struct.pack(">i", -1), struct.pack(">i", LARGEST_TOKEN + 1), b"GET / HTTP/1.1\r\n"])
@pytest.mark.parametrize("is_after_handshake", [False, True])
def test_a_frame_of_an_invalid_size_closes_the_connection(
    server: Secured, prefix: bytes, is_after_handshake: bool
) -> None:
    with server.connect() as client:
        if is_after_handshake:
            assert client.handshake("PLAIN").error_code == 0
        client.socket.sendall(prefix)
        assert client.is_closed


def test_a_token_of_the_largest_size_is_read(server: Secured) -> None:
    with server.connect() as client:
        assert client.handshake("PLAIN", version=0).error_code == 0
        assert client.raw_token(bytes(LARGEST_TOKEN)) == CLOSED
    with server.connect() as client:
        assert client.handshake("PLAIN").error_code == 0
        answer = client.authenticate(b"a" * (LARGEST_TOKEN - 100))
        assert answer.error_message == "Invalid SASL/PLAIN response: expected 3 tokens, got 1"


def test_after_the_authentication_frames_may_be_larger(server: Secured) -> None:
    with server.connect() as client:
        assert client.log_in("alice", "alice-secret").error_code == 0
        topics = [MetadataRequest.MetadataRequestTopic(name="a" * 200) for _ in range(LARGEST_TOKEN // 100)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        assert len(client.ask(ApiKey.METADATA, 4, request, MetadataResponse).topics) >= 1


@pytest.mark.parametrize("payload", [b"", b"\0", b"\0\x11", b"\0\x11\0\1", b"\0\x11\0\1\0\0\0\7\0\1a"])
def test_a_truncated_request_closes_the_connection(server: Secured, payload: bytes) -> None:
    with server.connect() as client:
        client.send_frame(payload)
        assert client.is_closed


@pytest.mark.parametrize(
    ("key", "version"), [(ApiKey.SASL_HANDSHAKE, 2), (ApiKey.SASL_AUTHENTICATE, 3), (ApiKey.SASL_AUTHENTICATE, -1)]
)
def test_an_unknown_version_closes_the_connection(server: Secured, key: ApiKey, version: int) -> None:
    with server.connect() as client:
        if key is ApiKey.SASL_AUTHENTICATE:
            assert client.handshake("PLAIN").error_code == 0
        client.send_frame(struct.pack(">hhih", key, version, 7, -1) + b"\0\0\0\0\0\0")
        assert client.is_closed


# -- wrong credentials -------------------------------------------------------------------------------------------------

INVALID = "Authentication failed: Invalid username or password"
OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"
SCRAM_REFUSAL = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (plain_token("alice", "wrong"), INVALID),
        (plain_token("nobody", "alice-secret"), INVALID),
        (plain_token("", "secret"), "Authentication failed: username not specified"),
        (plain_token("alice", ""), "Authentication failed: password not specified"),
        (plain_token("alice", "alice-secret", "bob"), OTHER_ID),
        (b"alice\0alice-secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0alice-secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0\0\0\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
@pytest.mark.parametrize("version", [0, 2])
def test_the_reason_of_a_refusal_by_plain_is_sent(server: Secured, token: bytes, message: str, version: int) -> None:
    with server.connect() as client:
        assert client.handshake("PLAIN").error_code == 0
        answer = client.authenticate(token, version)
        assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == message
        assert bytes(answer.auth_bytes) == b""
        assert client.is_closed


def test_a_refusal_of_a_raw_token_only_closes_the_connection(server: Secured) -> None:
    with server.connect() as client:
        assert client.handshake("PLAIN", version=0).error_code == 0
        assert client.raw_token(plain_token("alice", "wrong")) == CLOSED


@pytest.mark.parametrize(
    "token", [b"n,,n=nobody,r=abc", b"nonsense", b"", b"p,,n=alice,r=abc", "n,,n=\u00e9,r=abc".encode()]
)
def test_scram_does_not_say_why_it_refuses(server: Secured, token: bytes) -> None:
    with server.connect() as client:
        assert client.handshake("SCRAM-SHA-256").error_code == 0
        answer = client.authenticate(token)
        assert (answer.error_code, answer.error_message) == (Error.SASL_AUTHENTICATION_FAILED, SCRAM_REFUSAL)
        assert client.is_closed


def test_a_client_that_leaves_before_the_delayed_answer_does_no_harm(server: Secured) -> None:
    with server.connect() as client:
        assert client.handshake("PLAIN").error_code == 0
        token = SaslAuthenticateRequest(auth_bytes=plain_token("alice", "wrong"))
        client.send_frame(request_bytes(ApiKey.SASL_AUTHENTICATE, 2, token))
        client.socket.shutdown(socket.SHUT_RDWR)
    with server.connect() as client:
        assert client.log_in("alice", "alice-secret").error_code == 0


# -- after the authentication ------------------------------------------------------------------------------------------


def test_an_authenticated_client_gets_an_error_for_another_authentication(server: Secured) -> None:
    with server.connect() as client:
        assert client.log_in("alice", "alice-secret").error_code == 0
        assert client.handshake("PLAIN").error_code == Error.ILLEGAL_SASL_STATE
        answer = client.authenticate(plain_token("alice", "alice-secret"))
        assert answer.error_code == Error.ILLEGAL_SASL_STATE
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"
        assert client.versions().error_code == 0
        assert client.metadata().brokers


def test_without_sasl_the_requests_of_an_authentication_are_refused(server: Secured) -> None:
    with SaslConnection(server.process.port) as client:
        assert client.handshake("PLAIN", version=0).error_code == Error.ILLEGAL_SASL_STATE
        answer = client.authenticate(b"", version=1)
        assert answer.error_code == Error.ILLEGAL_SASL_STATE
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"


# -- re-authentication (KIP-368) ---------------------------------------------------------------------------------------

AGAIN_REFUSAL = "Cannot change principals during re-authentication from User.alice: User.bob"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_session_ends_at_the_first_request_after_its_lifetime(server: Secured, version: int) -> None:
    with server.connect_to_session() as client:
        answer = client.log_in("alice", "alice-secret", version)
        assert answer.session_lifetime_ms == (1500 if version else 0)
        assert client.metadata().brokers
        time.sleep(1.6)
        assert client.metadata() == CLOSED


def test_a_client_may_authenticate_again(server: Secured) -> None:
    with server.connect_to_session() as client:
        assert client.log_in("alice", "alice-secret").session_lifetime_ms == 1500
        time.sleep(0.8)
        assert client.log_in("alice", "alice-secret").session_lifetime_ms == 1500
        time.sleep(0.9)
        assert client.metadata().brokers


def test_a_client_may_ask_for_versions_during_a_session(server: Secured) -> None:
    """Java's clients do, after each authentication of a connection."""
    with server.connect_to_session() as client:
        assert client.versions().error_code == 0
        assert client.log_in("alice", "alice-secret").session_lifetime_ms
        assert client.versions().error_code == 0
        assert client.metadata().brokers
        assert client.log_in("alice", "alice-secret").error_code == 0
        assert client.metadata().brokers


def test_a_client_may_authenticate_again_after_the_lifetime(server: Secured) -> None:
    with server.connect_to_session() as client:
        client.log_in("alice", "alice-secret")
        time.sleep(1.6)
        assert client.log_in("alice", "alice-secret").session_lifetime_ms == 1500
        assert client.metadata().brokers


def test_a_second_authentication_within_a_second_is_refused(server: Secured) -> None:
    with server.connect_to_session() as client:
        client.log_in("alice", "alice-secret")
        assert client.log_in("alice", "alice-secret").error_code == 0
        assert client.handshake("PLAIN").error_code == Error.ILLEGAL_SASL_STATE
        assert client.metadata().brokers


def test_raw_tokens_authenticate_again_too(server: Secured) -> None:
    with server.connect_to_session() as client:
        client.log_in("alice", "alice-secret")
        assert client.handshake("PLAIN", version=0).error_code == 0
        assert client.raw_token(plain_token("alice", "alice-secret")) == b""
        assert client.metadata().brokers


def test_the_mechanism_may_not_change(server: Secured) -> None:
    with server.connect_to_session() as client:
        client.log_in("alice", "alice-secret")
        assert client.handshake("SCRAM-SHA-256").error_code == 0
        assert client.authenticate(b"n,,n=alice,r=abc") == CLOSED


def test_a_mechanism_that_is_not_enabled_ends_a_session(server: Secured) -> None:
    with server.connect_to_session() as client:
        client.log_in("alice", "alice-secret")
        assert client.handshake("GSSAPI") == CLOSED


def test_the_principal_may_not_change(server: Secured) -> None:
    with server.connect_to_session() as client:
        client.log_in("alice", "alice-secret")
        answer = client.log_in("bob", "bob-secret")
        assert (answer.error_code, answer.error_message) == (Error.SASL_AUTHENTICATION_FAILED, AGAIN_REFUSAL)
        assert client.is_closed


def test_a_wrong_password_ends_a_session(server: Secured) -> None:
    with server.connect_to_session() as client:
        client.log_in("alice", "alice-secret")
        answer = client.log_in("alice", "wrong")
        assert (answer.error_code, answer.error_message) == (Error.SASL_AUTHENTICATION_FAILED, INVALID)
        assert client.is_closed


def test_another_request_during_a_re_authentication_ends_the_session(server: Secured) -> None:
    with server.connect_to_session() as client:
        client.log_in("alice", "alice-secret")
        assert client.handshake("PLAIN").error_code == 0
        assert not client.metadata().brokers
        assert client.is_closed
