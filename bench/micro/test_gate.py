"""The gate: a hundred requests that arrive together, through the reactor of a broker in this process."""

import pytest

from tests.hostile_clients import fetch_request, produce_request
from tests.twin_brokers import BrokerTwin, receive

TOGETHER = 100


@pytest.fixture
def broker(tmp_path):
    twin = BrokerTwin(tmp_path, gated=True)
    twin.create_topic("t", 1, {})
    yield twin
    twin.stop()


def ask_together(client, request: bytes) -> bytes:
    client.sendall(request * TOGETHER)
    return [receive(client) for _ in range(TOGETHER)][-1]


def test_produce(benchmark, broker):
    assert benchmark(ask_together, broker.connection(1), produce_request("t", bytes(100)))
    assert broker.broker.parts.gate.counters()


def test_fetch(benchmark, broker):
    client = broker.connection(1)
    ask_together(client, produce_request("t", bytes(100)))
    assert len(benchmark(ask_together, client, fetch_request("t", max_bytes=10_000))) > 10_000
