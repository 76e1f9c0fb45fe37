"""The cost of users and ACLs: CPU time per small produce request, in paired runs.

Two brokers serve the same requests in turns: one without security, and one whose clients are authenticated users with
the permissions of ACLs, among a thousand ACLs of others.

KAFKAPY_ACL_PAIRS: the number of pairs (60).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from tests.broker_process import BrokerProcess
from tests.full.driven_broker import TOPIC, Driven, median_ratio
from tests.security.secured_brokers import SecuredKafkapy, allow, ask_as_admin, connect
from tests.wire.test_quotas import create

PAIRS = int(os.environ.get("KAFKAPY_ACL_PAIRS", "60"))
CONNECTIONS = 1000
OTHERS = 1000
LARGEST_RATIO = 1.03
USER = "ada"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[list[Driven]]:
    with BrokerProcess(tmp_path / "free") as free, SecuredKafkapy(tmp_path / "secured", [USER]) as secured:
        create(free, 7, {TOPIC: 1})
        topic = CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        created = ask_as_admin(secured, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        assert created.topics[0].error_code == 0
        allow(secured, {USER: [f"Write topic {TOPIC}"]})
        for first in range(0, OTHERS, 100):
            allow(secured, {f"other-{number}": [f"Write topic t-{number}"] for number in range(first, first + 100)})
        opened = (partial(socket.create_connection, ("localhost", free.port)), partial(connect, secured, USER))
        found = [Driven(broker, each, CONNECTIONS) for broker, each in zip((free, secured), opened, strict=True)]
        yield found
        for each in found:
            each.stop()


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_users_and_permissions_cost_a_request_little(both: list[Driven]) -> None:
    free, secured = both
    assert median_ratio(free, secured, PAIRS, CONNECTIONS) < LARGEST_RATIO
