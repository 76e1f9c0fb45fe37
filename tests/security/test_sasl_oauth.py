"""OAUTHBEARER: kafkapy and Apache Kafka accept and refuse the same tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.errors import Error
from tests.broker_process import BrokerProcess
from tests.oauth_tokens import SigningKey, initial_response, key_set, unsecured_token
from tests.peers import ApacheKafka, kafka_directory
from tests.ports import free_ports
from tests.sasl_client import SaslConnection
from tests.server_process import ServerProcess

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SIGNED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
WAIT_S = 30


class TokenServer:
    """A running broker with two listeners for tokens: SIGNED checks signatures with keys from a file, UNSIGNED checks
    none."""

    def __init__(self, process: ServerProcess, signed_port: int, unsigned_port: int, keys: list[SigningKey]) -> None:
        self.process = process
        self.signed_port = signed_port
        self.unsigned_port = unsigned_port
        self.keys = keys

    def present(self, token: str, *arguments: Any, signed: bool = True, **extensions: str) -> Any:
        """Authenticates with a token on a new connection, and returns the broker's last response."""
        with SaslConnection(self.signed_port if signed else self.unsigned_port) as client:
            assert client.handshake("OAUTHBEARER").error_code == 0
            answer = client.authenticate(initial_response(token, *arguments, **extensions))
            if answer.error_code == 0 and bytes(answer.auth_bytes):
                refusal = bytes(answer.auth_bytes).decode()
                answer = client.authenticate(b"\1")
                assert answer.error_message == refusal
                assert client.is_closed
            elif answer.error_code == 0:
                assert client.metadata().brokers
            return answer


def properties(port: int, signed_port: int, unsigned_port: int, keys: Path) -> dict[str, str]:
    listeners = f"PLAINTEXT://localhost:{port},SIGNED://localhost:{signed_port},UNSIGNED://localhost:{unsigned_port}"
    signed = "listener.name.signed.oauthbearer."
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SIGNED:SASL_PLAINTEXT,UNSIGNED:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{signed}sasl.jaas.config": f"{MODULE};",
        f"{signed}sasl.server.callback.handler.class": SIGNED,
        f"{signed}sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        f"{signed}sasl.oauthbearer.expected.audience": "kafka",
        f"{signed}sasl.oauthbearer.expected.issuer": "https://issuer",
        "listener.name.unsigned.oauthbearer.sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="broker";',
    }


@pytest.fixture(scope="module", params=["kafkapy", pytest.param("apache", marks=pytest.mark.peer)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    port, signed_port, unsigned_port = free_ports(3)
    directory: Path = tmp_path_factory.mktemp(request.param)
    keys = [SigningKey(directory, f"key-{name}", name) for name in ("RS256", "PS256", "ES256", "ES384")]
    path = directory / "keys.json"
    path.write_bytes(key_set(*(key.json_web_key() for key in keys)))
    settings = properties(port, signed_port, unsigned_port, path)
    process: ServerProcess
    if request.param == "kafkapy":
        settings["kafkapy.sasl.oauthbearer.unsecured.tokens.enable"] = "true"
        process = BrokerProcess(directory, settings, port=port)
    else:
        process = AllowedKafka(kafka_directory("4.3.0"), directory, port, properties=settings)
        listeners = settings["listeners"]
        text = process.config.read_text()
        controller = f"{listeners},CONTROLLER://localhost:{process.controller_port}"
        process.config.write_text(text.replace(f"\nlisteners={listeners}\n", f"\nlisteners={controller}\n", 1))
    with process:
        yield TokenServer(process, signed_port, unsigned_port, keys)


class AllowedKafka(ApacheKafka):
    """An Apache Kafka whose JVM permits it to read the file of keys."""

    def command(self) -> list[str]:
        java, *others = super().command()
        path = self.directory / "keys.json"
        option = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
        return [java, f"{option}.urls={path.as_uri()}", f"{option}.files={path}", *others]


GOOD = {"aud": ["other", "kafka"], "iss": "https://issuer"}


@pytest.mark.parametrize("number", range(4))
def test_a_token_of_each_key_is_accepted(server: TokenServer, number: int) -> None:
    answer = server.present(server.keys[number].token(**GOOD, exp=int(time.time()) + 100))
    assert answer.error_code == 0
    assert 0 < answer.session_lifetime_ms <= 100_000


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": ""},
        {"aud": "other"},
        {"aud": None},
        {"iss": "https://other"},
        {"iss": None},
        {"nbf": int(time.time()) + 1000},
    ],
)
def test_a_token_with_other_claims_is_refused(server: TokenServer, claims: dict[str, Any]) -> None:
    answer = server.present(server.keys[0].token(**{**GOOD, **claims}))
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == '{"status":"invalid_token"}'


@pytest.mark.parametrize("header", [{"kid": "other"}, {"alg": "RS512"}, {"alg": "none"}, {"alg": "HS256"}])
def test_a_token_with_another_header_is_refused(server: TokenServer, header: dict[str, Any]) -> None:
    answer = server.present(server.keys[0].token(header, **GOOD))
    assert answer.error_message == '{"status":"invalid_token"}'


def test_a_token_without_a_signature_is_refused_where_keys_are_configured(server: TokenServer) -> None:
    answer = server.present(unsecured_token(**GOOD))
    assert answer.error_message == '{"status":"invalid_token"}'


def test_the_authorization_id_has_to_be_the_subject(server: TokenServer) -> None:
    token = server.keys[0].token(**GOOD)
    assert server.present(token, "alice").error_code == 0
    answer = server.present(token, "bob")
    assert answer.error_message == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
        "principal name (alice)"
    )


def test_extensions_are_accepted(server: TokenServer) -> None:
    assert server.present(server.keys[0].token(**GOOD), traceId="123", logicalCluster="lkc-1").error_code == 0


@pytest.mark.parametrize("message", [b"", b"n,,", b"\1", b"n,,\1x1=y\1auth=Bearer x\1\1"])
def test_a_malformed_message_is_refused(server: TokenServer, message: bytes) -> None:
    with SaslConnection(server.signed_port) as client:
        client.handshake("OAUTHBEARER")
        answer = client.authenticate(message)
        assert (answer.error_code, answer.error_message) == (Error.SASL_AUTHENTICATION_FAILED, REFUSED)
        assert client.is_closed


def test_tokens_without_a_signature_are_accepted_where_that_is_configured(server: TokenServer) -> None:
    answer = server.present(unsecured_token(exp=int(time.time()) + 100), signed=False)
    assert answer.error_code == 0
    assert 0 < answer.session_lifetime_ms <= 100_000
    for refused in (unsecured_token(exp=1), unsecured_token(sub=None), server.keys[0].token(**GOOD)):
        assert server.present(refused, signed=False).error_message == '{"status":"invalid_token"}'


def test_a_session_ends_with_its_token(server: TokenServer) -> None:
    with SaslConnection(server.unsigned_port) as client:
        client.handshake("OAUTHBEARER")
        token = unsecured_token(exp=int(time.time()) + 2)
        assert 0 < client.authenticate(initial_response(token)).session_lifetime_ms <= 2000
        assert client.metadata().brokers
        time.sleep(2.1)
        client.metadata()
        assert client.is_closed
