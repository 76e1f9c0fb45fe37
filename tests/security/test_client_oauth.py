"""Our clients with OAUTHBEARER against Apache Kafka: tokens of an OAuth provider and of a file, and their renewal."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import AuthenticationError, Producer
from kafkapy.client.admin import Admin, NewTopic
from tests.peers import ApacheKafka, kafka_directory
from tests.ports import free_port
from tests.token_provider import Issuer, TokenProvider

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
AUDIENCE = "kafka"
SHORT_S = 6
TIMEOUT_S = 30.0


class OauthKafka(ApacheKafka):
    """A node with a listener OAUTH, which verifies tokens by a file of keys."""

    def __init__(self, directory: Path, key_set: Path) -> None:
        self.oauth_port = free_port()
        self._key_set = key_set
        super().__init__(kafka_directory("4.3.0"), directory, heap=("-Xmx512M",))

    def _java(self) -> list[str]:
        url = self._key_set.as_uri().replace("file:///", "file:/")
        allowed = f"{self._key_set.as_uri()},{url}"
        options = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed}"]
        return [*super()._java(), *options, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={self._key_set}"]

    def _settings(self, properties: Any) -> dict[str, str]:
        settings = super()._settings(properties)
        ours = f",OAUTH://localhost:{self.oauth_port}"
        prefix = "listener.name.oauth."
        return {
            **settings,
            "listeners": settings["listeners"] + ours,
            "advertised.listeners": settings["advertised.listeners"] + ours,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OAUTH:SASL_PLAINTEXT",
            f"{prefix}sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}oauthbearer.sasl.jaas.config": f"{MODULE} required;",
            f"{prefix}oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
            f"{prefix}oauthbearer.connections.max.reauth.ms": "3600000",
            "sasl.oauthbearer.jwks.endpoint.url": self._key_set.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("issuer"))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[OauthKafka]:
    with OauthKafka(tmp_path_factory.mktemp("oauth-kafka"), issuer.key_set) as made:
        yield made


@pytest.fixture
def provider() -> Iterator[TokenProvider]:
    made = TokenProvider()
    yield made
    made.close()


def client(kafka: OauthKafka, url: str, **more: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"localhost:{kafka.oauth_port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE} required;",
        "sasl.oauthbearer.token.endpoint.url": url,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


CREDENTIALS = {
    "sasl.oauthbearer.client.credentials.client.id": "id",
    "sasl.oauthbearer.client.credentials.client.secret": "secret",
}


def test_tokens_of_a_provider_are_renewed_and_so_are_the_sessions(
    kafka: OauthKafka, issuer: Issuer, provider: TokenProvider
) -> None:
    provider.answers = [(200, lambda: {"access_token": issuer.token("alice", lifetime_s=SHORT_S, aud=AUDIENCE)})]
    short = {"sasl.login.refresh.min.period.seconds": "1", "sasl.login.refresh.buffer.seconds": "0"}
    properties = {**client(kafka, provider.url), **CREDENTIALS, **short}
    topic = f"oauth-{uuid.uuid4()}"
    with Admin(properties) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    with Producer(properties) as producer:
        producer.send(topic, "first").result(TIMEOUT_S)
        before = producer._network._connections[1]
        end = time.monotonic() + 2 * SHORT_S
        while time.monotonic() < end:
            producer.send(topic, "more").result(TIMEOUT_S)
            time.sleep(0.2)
        assert producer._network._connections[1] is before
    assert len(provider.asked) >= 4


def test_a_token_of_a_file_is_accepted(kafka: OauthKafka, issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(issuer.token("alice", aud=AUDIENCE))
    with Admin(client(kafka, path.as_uri())) as admin:
        assert admin.describe_cluster().cluster_id


@pytest.mark.parametrize("claims", [{"aud": "other"}, {"aud": AUDIENCE, "lifetime_s": -60}])
def test_a_token_that_the_broker_refuses_is_an_authentication_error(
    kafka: OauthKafka, issuer: Issuer, tmp_path: Path, claims: dict[str, Any]
) -> None:
    path = tmp_path / "token"
    path.write_text(issuer.token("alice", **claims))
    with Admin(client(kafka, path.as_uri())) as admin, pytest.raises(AuthenticationError, match="invalid_token"):
        admin.describe_cluster()


def test_a_provider_that_refuses_the_client_prevents_it(kafka: OauthKafka, provider: TokenProvider) -> None:
    provider.answers = [(401, {"error": "invalid_client"})]
    with pytest.raises(AuthenticationError, match="invalid_client"):
        Admin({**client(kafka, provider.url), **CREDENTIALS})
