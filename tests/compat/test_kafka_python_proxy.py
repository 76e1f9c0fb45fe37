"""The option proxy_url with kafka-python and with ours: each connection goes through the proxy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import kafkapy.compat.kafka as ours
from kafkapy.testing import Broker
from tests.proxy_server import ProxyServer

NAME = "broker.invalid"  # a name that only the proxy knows
TOPIC = "through-a-proxy"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.fixture(params=["kafka", "kafkapy.compat.kafka"])
def library(request: pytest.FixtureRequest) -> Any:
    return import_module(request.param)


def written(library: Any, bootstrap: str, **options: Any) -> bytes:
    """Writes a record, reads it again, and returns its value."""
    with library.KafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
        found = producer.send(TOPIC, b"v").get(60)
    consumer = library.KafkaConsumer(bootstrap_servers=bootstrap, **options)
    try:
        place = library.TopicPartition(TOPIC, found.partition)
        consumer.assign([place])
        consumer.seek(place, found.offset)
        value: bytes = next(consumer).value
        return value
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("scheme", "user"), [("socks5", ""), ("socks5h", "me:secret"), ("http", ""), ("http", "me:secret")]
)
def test_records_are_written_and_read(library: Any, broker: Broker, scheme: str, user: str) -> None:
    with ProxyServer(user) as proxy:
        url = f"{scheme}://{user}{'@' * bool(user)}{proxy.address}"
        assert written(library, broker.bootstrap_servers, proxy_url=url) == b"v"
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        assert {each for _, each in proxy.targets} == {port}
        assert len(proxy.targets) >= 2


def test_the_proxy_looks_up_names(library: Any, broker: Broker) -> None:
    port = broker.bootstrap_servers.rpartition(":")[2]
    with ProxyServer(names=(NAME, "localhost")) as proxy:
        assert written(library, f"{NAME}:{port}", socks5_proxy=f"socks5h://{proxy.address}") == b"v"
        assert proxy.targets[0] == (NAME, int(port))


@pytest.mark.parametrize(
    ("scheme", "text"),
    [("socks5", "asks for a user"), ("http", "407 Proxy Authentication Required"), ("socks5://me:x@", "does not know")],
)
def test_a_refusal_of_the_proxy_names_the_reason(
    broker: Broker, scheme: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ProxyServer("me:secret") as proxy:
        url = f"{scheme}{'' if '@' in scheme else '://'}{proxy.address}"
        with pytest.raises(ours.errors.KafkaError):
            ours.KafkaAdminClient(
                bootstrap_servers=broker.bootstrap_servers, proxy_url=url, bootstrap_timeout_ms=1000
            ).list_topics()
    assert not proxy.targets
    assert text in caplog.text


def test_a_broker_that_the_proxy_cannot_reach(caplog: pytest.LogCaptureFixture) -> None:
    with ProxyServer() as proxy, pytest.raises(ours.errors.KafkaError):
        ours.KafkaAdminClient(
            bootstrap_servers="127.0.0.1:1", proxy_url=f"socks5://{proxy.address}", bootstrap_timeout_ms=1000
        ).list_topics()
    assert "has refused the connection" in caplog.text
