"""SASL on the connections of a client: its requests, its errors, and sessions that end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.client import AuthenticationError, ConfigError, TopicPartition
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.harness.client_log import LogBrokers

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "correct horse"
REFUSED = "Authentication failed: Invalid username or password"
SASL = [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE]


class SaslBrokers(LogBrokers):
    """Brokers with PLAIN, whose sessions last `lifetime_ms` (0: without an end)."""

    def __init__(self) -> None:
        super().__init__()
        self.lifetime_ms = 0
        self.secret = SECRET
        self.answers[ApiKey.SASL_HANDSHAKE] = self._handshake
        self.answers[ApiKey.SASL_AUTHENTICATE] = self._authenticate

    def _handshake(self, request: Any, version: int) -> Any:
        is_known = request.mechanism == "PLAIN"
        error = Error.NONE if is_known else Error.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=int(error), mechanisms=["PLAIN", "OTHER"])

    def _authenticate(self, request: Any, version: int) -> Any:
        if request.auth_bytes == f"\0alice\0{self.secret}".encode():
            return SaslAuthenticateResponse(session_lifetime_ms=self.lifetime_ms)
        return SaslAuthenticateResponse(error_code=int(Error.SASL_AUTHENTICATION_FAILED), error_message=REFUSED)

    @property
    def apis(self) -> list[ApiKey]:
        """The APIs of all requests so far."""
        return [each.key for each in self.asked]


@pytest.fixture
def brokers() -> Iterator[SaslBrokers]:
    harness = SaslBrokers()
    harness.fill("t", ["a"])
    yield harness
    harness.close()


def plain(password: str = SECRET, **more: Any) -> dict[str, Any]:
    jaas = f'{MODULE} required username="alice" password="{password}";'
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_jaas_config": jaas, **more}


def test_a_connection_authenticates_before_its_first_request(brokers: SaslBrokers) -> None:
    with brokers.admin(**plain()) as admin:
        assert [topic.name for topic in admin.list_topics().values()] == ["t"]
    assert brokers.apis[:3] == [ApiKey.API_VERSIONS, *SASL]
    assert [each.version for each in brokers.asked[1:3]] == [1, 2]


def test_a_wrong_password_ends_every_kind_of_call_without_another_attempt(brokers: SaslBrokers) -> None:
    wrong = plain("wrong")
    with brokers.admin(**wrong) as admin, pytest.raises(AuthenticationError, match=REFUSED) as caught:
        admin.list_topics()
    assert caught.value.error is Error.SASL_AUTHENTICATION_FAILED
    assert brokers.apis == [ApiKey.API_VERSIONS, *SASL]
    with brokers.producer(**wrong) as producer, pytest.raises(AuthenticationError, match="bootstrap server memory:1"):
        producer.send("t", "a")
    with brokers.consumer(**wrong) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        with pytest.raises(AuthenticationError, match=REFUSED):
            consumer.poll(10)
        with pytest.raises(AuthenticationError, match=REFUSED):
            consumer.end_offsets([TopicPartition("t", 0)])


def test_a_corrected_password_is_accepted_by_the_same_client(brokers: SaslBrokers) -> None:
    with brokers.admin(**plain("changed")) as admin:
        with pytest.raises(AuthenticationError):
            admin.list_topics()
        brokers.secret = "changed"
        assert list(admin.list_topics()) == ["t"]


def test_a_mechanism_that_the_broker_does_not_have_is_named(brokers: SaslBrokers) -> None:
    scram = plain(sasl_mechanism="SCRAM-SHA-512")
    expected = r"mechanism 'SCRAM-SHA-512' not enabled in the server, enabled mechanisms are \[PLAIN, OTHER\]"
    with brokers.admin(**scram) as admin, pytest.raises(AuthenticationError, match=expected) as caught:
        admin.list_topics()
    assert caught.value.error is Error.UNSUPPORTED_SASL_MECHANISM


def test_a_broker_without_sasl_is_an_authentication_error(brokers: SaslBrokers) -> None:
    brokers.versions[ApiKey.SASL_HANDSHAKE] = (0, 0)
    with brokers.admin(**plain()) as admin, pytest.raises(AuthenticationError, match="does not support SASL"):
        admin.list_topics()


def test_a_session_is_renewed_before_it_ends(brokers: SaslBrokers) -> None:
    brokers.lifetime_ms = 10_000
    with brokers.consumer(auto_offset_reset="earliest", **plain()) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        assert len(consumer.poll(5)) == 1
        began = brokers.clock.monotonic_ms()
        while brokers.clock.monotonic_ms() < began + 35_000:
            assert not consumer.poll(1)
        connections = len(brokers.attempts)
    renewals = brokers.apis.count(ApiKey.SASL_HANDSHAKE) - connections
    assert 3 * connections <= renewals <= 4 * connections
    assert brokers.apis.count(ApiKey.API_VERSIONS) == connections


def test_an_idle_connection_is_renewed_too(brokers: SaslBrokers) -> None:
    brokers.lifetime_ms = 2_000
    with brokers.admin(**plain()) as admin:
        admin.list_topics()
        admin._network.wait_until(lambda: False, 7)
        admin.list_topics()
        assert brokers.apis.count(ApiKey.SASL_HANDSHAKE) >= 4
        assert len(brokers.attempts) == brokers.apis.count(ApiKey.API_VERSIONS)


def test_a_refused_renewal_is_raised_to_the_caller(brokers: SaslBrokers) -> None:
    brokers.lifetime_ms = 2_000
    with brokers.consumer(auto_offset_reset="earliest", **plain()) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        assert len(consumer.poll(5)) == 1
        brokers.secret = "changed"
        with pytest.raises(AuthenticationError, match=REFUSED):
            consumer.poll(10)


def test_secrets_are_not_shown(brokers: SaslBrokers, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with brokers.admin(**plain("the-secret")) as admin:
        with pytest.raises(AuthenticationError) as caught:
            admin.list_topics()
        assert "the-secret" not in caplog.text + repr(caught.value) + repr(admin) + repr(
            admin._config["sasl.jaas.config"]
        )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sasl_jaas_config": None}, r"sasl\.jaas\.config is missing"),
        ({"sasl_jaas_config": f"{MODULE} required;"}, "no username"),
        ({"sasl_jaas_config": f'{MODULE} required username="a";'}, "no password"),
        ({"sasl_jaas_config": f'{MODULE} required username="a" password="b"'}, "semi-colon"),
        ({"sasl_mechanism": "CRAM-MD5"}, "Invalid value CRAM-MD5 for configuration sasl.mechanism"),
        ({"security_protocol": "TLS"}, "security.protocol"),
    ],
)
def test_a_configuration_without_usable_credentials_is_refused(
    brokers: SaslBrokers, change: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        brokers.admin(**plain(**change))
