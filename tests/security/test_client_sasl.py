"""Our clients with SASL against Apache Kafka: every mechanism, refusals, and sessions that end."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

import pytest

from kafkapy.client import AsyncConsumer, AsyncProducer, AuthenticationError, Consumer, Producer
from kafkapy.client.admin import Admin, NewTopic
from kafkapy.errors import Error
from tests.security.secured_kafka import SHORT_SESSION_MECHANISM, SHORT_SESSION_MS, SecuredKafka, sasl_client

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TIMEOUT_S = 30.0


def client(kafka: SecuredKafka, mechanism: str, password: str | None = None, **more: str) -> dict[str, Any]:
    """Returns the configuration of a client on the listener SASL_PLAINTEXT."""
    return {
        "bootstrap.servers": kafka.address("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        **sasl_client(mechanism, password=password),
        **more,
    }


def new_topic(properties: dict[str, Any]) -> str:
    topic = f"secured-{uuid.uuid4()}"
    with Admin(properties) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])
    return topic


def read_all(properties: dict[str, Any], topic: str, count: int) -> list[str]:
    """Returns the values of a topic, read by a group."""
    values: list[str] = []
    group = {"group.id": f"group-{topic}", "auto.offset.reset": "earliest"}
    with Consumer({**properties, **group}) as consumer:
        consumer.subscribe([topic])
        end = time.monotonic() + TIMEOUT_S
        while len(values) < count and time.monotonic() < end:
            values += [(record.value or b"").decode() for record in consumer.poll(1)]
        consumer.commit()
    return values


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_records_pass_with_every_mechanism(secured_kafka: SecuredKafka, mechanism: str) -> None:
    properties = client(secured_kafka, mechanism)
    topic = new_topic(properties)
    with Producer(properties, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(100):
            producer.send(topic, str(number))
        producer.commit_transaction()
    assert sorted(map(int, read_all(properties, topic, 100))) == list(range(100))


def test_the_clients_of_asyncio_authenticate(secured_kafka: SecuredKafka) -> None:
    properties = client(secured_kafka, "SCRAM-SHA-512")
    topic = new_topic(properties)

    async def pass_a_record() -> bytes | None:
        async with AsyncProducer(properties) as producer:
            await producer.send(topic, "a")
        async with AsyncConsumer(properties, group_id=topic, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                return record.value
        return None

    assert asyncio.run(asyncio.wait_for(pass_a_record(), TIMEOUT_S)) == b"a"


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", "due to invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ("SCRAM-SHA-512", "due to invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
def test_a_wrong_password_is_reported_with_the_text_of_the_broker(
    secured_kafka: SecuredKafka, mechanism: str, expected: str
) -> None:
    properties = client(secured_kafka, mechanism, "wrong")
    with Admin(properties) as admin, pytest.raises(AuthenticationError, match=expected) as caught:
        admin.list_topics()
    assert caught.value.error is Error.SASL_AUTHENTICATION_FAILED
    with Producer(properties) as producer, pytest.raises(AuthenticationError, match=expected):
        producer.send("any", "a")
    with Consumer(properties, group_id="any") as consumer:
        consumer.subscribe(["any"])
        with pytest.raises(AuthenticationError, match=expected):
            consumer.poll(TIMEOUT_S)


def test_sasl_on_a_listener_without_sasl_is_an_error_of_its_own(secured_kafka: SecuredKafka) -> None:
    properties = client(secured_kafka, "PLAIN", **{"bootstrap.servers": secured_kafka.address("PLAINTEXT")})
    with Admin(properties) as admin, pytest.raises(AuthenticationError, match="may not use SASL") as caught:
        admin.list_topics()
    assert caught.value.error is Error.ILLEGAL_SASL_STATE


def test_sessions_are_renewed_on_the_same_connections(secured_kafka: SecuredKafka) -> None:
    properties = client(secured_kafka, SHORT_SESSION_MECHANISM)
    topic = new_topic(properties)
    with Producer(properties) as producer, Consumer(properties, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        producer.send(topic, "first", partition=0).result(TIMEOUT_S)
        sent, values = 1, []
        networks = (producer._network, consumer._network)
        end = time.monotonic() + TIMEOUT_S
        while not values and time.monotonic() < end:
            values += [record.value for record in consumer.poll(1)]
        opened = [network._connections[1] for network in networks]
        end = time.monotonic() + 3 * SHORT_SESSION_MS / 1000
        while time.monotonic() < end:
            producer.send(topic, "more", partition=0).result(TIMEOUT_S)
            sent += 1
            values += [record.value for record in consumer.poll(0.2)]
        end = time.monotonic() + TIMEOUT_S
        while len(values) < sent and time.monotonic() < end:
            values += [record.value for record in consumer.poll(0.2)]
        assert len(values) == sent
        assert [network._connections[1] for network in networks] == opened
        for metrics in (producer.metrics(), consumer.metrics()):
            measured = {metric.name: value for metric, value in metrics.items()}
            assert measured["successful-authentication-total"] >= 1
            assert measured["successful-reauthentication-total"] >= 1
            assert measured["reauthentication-latency-max"] >= 0
            assert measured["failed-reauthentication-total"] == 0
