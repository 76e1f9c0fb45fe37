"""The cost of quotas: CPU time per small produce request with 1,000 entities and 10,000 connections, in paired runs.

Two brokers serve the same requests in turns, one with three quotas for each of 1,000 client ids, one without quotas.
Each turn uses many connections in waves; the order within a pair alternates. The median of the ratios is compared, so
that other load on the machine, which disturbs single turns, has little influence.

KAFKAPY_QUOTA_PAIRS: the number of pairs (60). KAFKAPY_QUOTA_CONNECTIONS: connections per broker
(10000); a multiple of 1,000, so that each connection has one client id, without which Python serves its requests.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.full.driven_broker import ENTITIES, TOPIC, Driven, median_ratio
from tests.wire.test_quota_changes import alter
from tests.wire.test_quotas import create

PAIRS = int(os.environ.get("KAFKAPY_QUOTA_PAIRS", "60"))
CONNECTIONS = int(os.environ.get("KAFKAPY_QUOTA_CONNECTIONS", "10000"))
LARGEST_RATIO = 1.02
QUOTAS = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e6}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[list[Driven]]:
    with BrokerProcess(tmp_path / "free") as free, BrokerProcess(tmp_path / "limited") as limited:
        found = []
        for broker in (free, limited):
            create(broker, 7, {TOPIC: 1})
            found.append(Driven(broker, partial(socket.create_connection, ("localhost", broker.port)), CONNECTIONS))
        yield found
        for each in found:
            each.stop()


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_quotas_of_others_and_of_its_own_cost_a_client_little(both: list[Driven]) -> None:
    assert CONNECTIONS % ENTITIES == 0
    free, limited = both
    for first in range(0, ENTITIES, 100):
        alter(
            limited.broker,
            1,
            [([("client-id", f"client-{number:04}")], list(QUOTAS.items())) for number in range(first, first + 100)],
        )
    assert median_ratio(free, limited, PAIRS, CONNECTIONS) < LARGEST_RATIO
