"""Invalid changes of quotas next to Apache Kafka: the same error, with the same message, for each entity."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkapy.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from tests.api_client import ask
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess

Pairs = list[tuple[str, str | None]]
Ops = list[tuple[str, float | None]]
RATE = "producer_byte_rate"
KEYS = (RATE, "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "connection_creation_rate")
VALUES = (0.0, -0.0, -1.0, -1e300, 1.0, 0.5, 1.0000001, 0.9999999, 1e-300, 5e-324, 1e9,
          2.0**31 - 1, 2.0**31, 2.0**63, 2.0**64, 1e300, inf,
          -inf, nan)  # fmt: skip
ADDRESSES = ("127.0.0.1", "::1", "0:0:0:0:0:0:0:1", "256.1.1.1", "1.2.3", "1.2.3.4.5", "::1::", "1.2.3.4/8", "a b", "*",
             "no-such-host.invalid", "localhost", "", None)  # fmt: skip


@pytest.fixture(scope="module")
def servers(kafka_43: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    ours = BrokerProcess(tmp_path_factory.mktemp("ours"))
    kafka = ApacheKafka(kafka_43, tmp_path_factory.mktemp("kafka"), heap=("-Xmx512M",))
    with kafka, ours:
        yield [kafka, ours]


def alter(server: ServerProcess, version: int, entries: list[tuple[Pairs, Ops]]) -> list[Any]:
    part, op = AlterClientQuotasRequest.EntityData, AlterClientQuotasRequest.OpData
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequest.EntryData(
                entity=[part(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[op(key=key, value=0.0 if value is None else value, remove=value is None) for key, value in ops],
            )
            for entity, ops in entries
        ],
        validate_only=False,
    )
    with socket.create_connection(("localhost", server.port), timeout=60) as connection:
        response = ask(connection, ApiKey.ALTER_CLIENT_QUOTAS, version, request, AlterClientQuotasResponse)
    return sorted(
        (sorted((each.entity_type, each.entity_name or "") for each in entry.entity), entry.error_code,
         entry.error_message)
        for entry in response.entries
    )  # fmt: skip


def stored(server: ServerProcess) -> list[Any]:
    """Returns all quotas that the server has."""
    with socket.create_connection(("localhost", server.port), timeout=30) as connection:
        request = DescribeClientQuotasRequest(components=[], strict=False)
        response = ask(connection, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request, DescribeClientQuotasResponse)
    assert response.error_code == 0, response
    return sorted(
        (sorted((each.entity_type, each.entity_name or "") for each in entry.entity),
         sorted((each.key, each.value) for each in entry.values))
        for entry in response.entries
    )  # fmt: skip


def both(servers: list[ServerProcess], entries: list[tuple[Pairs, Ops]], version: int = 1) -> None:
    kafkas, ours = [alter(server, version, entries) for server in servers]
    assert ours == kafkas


@pytest.mark.parametrize("key", [*KEYS, "producer_byte_rates", "", "PRODUCER_BYTE_RATE"])
def test_values(servers: list[ServerProcess], key: str) -> None:
    for place, value in enumerate(VALUES):
        both(servers, [([("user", f"user-{place}")], [(key, value)])])
        both(servers, [([("ip", f"10.0.0.{place}")], [(key, value)])])
        both(servers, [([("client-id", None), ("user", f"user-{place}")], [(key, value)])], 0)


@pytest.mark.parametrize(
    "entity",
    [
        [],
        [("user", "")],
        [("client-id", "")],
        [("", "a")],
        [("USER", "a")],
        [("group", "a")],
        [("user", "a"), ("user", "b")],
        [("user", "a"), ("user", None)],
        [("user", "a"), ("group", "b")],
        [("ip", "127.0.0.1"), ("user", "a")],
        [("ip", None), ("client-id", None)],
        [("user", "é ,=%/\"'"), ("client-id", "x" * 300)],
        [("user", "\0")],
    ],
)
def test_entities(servers: list[ServerProcess], entity: Pairs) -> None:
    for ops in ([(RATE, 1000.0)], [("connection_creation_rate", 5.0)], [(RATE, None)], []):
        both(servers, [(entity, ops)])


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses(servers: list[ServerProcess], address: str | None) -> None:
    for ops in ([("connection_creation_rate", 1000.0)], [(RATE, 1000.0)], [("connection_creation_rate", None)]):
        both(servers, [([("ip", address)], ops)])


def test_one_invalid_entry_does_not_affect_the_others(servers: list[ServerProcess]) -> None:
    entries: list[tuple[Pairs, Ops]] = [
        ([("user", "first")], [(RATE, 100.0), ("request_percentage", -1.0)]),
        ([("user", "second")], [(RATE, 100.0)]),
        ([("ip", "nowhere.invalid")], [("connection_creation_rate", 1.0)]),
        ([("user", "third")], [(RATE, None), (RATE, 7.0)]),
        ([("user", "fourth")], [(RATE, 7.0), (RATE, None)]),
        ([("user", "second")], [(RATE, 300.0)]),
    ]
    both(servers, entries)
    both(servers, [([("user", "second")], [(RATE, None), ("unknown", None), ("connection_creation_rate", None)])])


@pytest.mark.parametrize("kind", ["user", "client-id", "ip", "group", "", "USER"])
def test_filters(servers: list[ServerProcess], kind: str) -> None:
    found = []
    component = DescribeClientQuotasRequest.ComponentData
    for server in servers:
        answers = []
        for match_type, match in [(0, "a"), (0, None), (0, ""), (1, None), (1, "a"), (2, None), (2, "a"), (3, None)]:
            for others in ([], [component(entity_type="user", match_type=2, match=None)]):
                request = DescribeClientQuotasRequest(
                    components=[component(entity_type=kind, match_type=match_type, match=match), *others], strict=True
                )
                with socket.create_connection(("localhost", server.port), timeout=30) as connection:
                    response = ask(connection, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request, DescribeClientQuotasResponse)
                answers.append((match_type, match, len(others), response.error_code, response.error_message))
        found.append(answers)
    assert found[1] == found[0]


def test_the_same_quotas_are_stored(servers: list[ServerProcess]) -> None:
    """The last test of the module. Apache Kafka describes a change a little later than it responds to it."""
    ours = stored(servers[1])
    assert len(ours) > 20
    for _ in range(1000):
        kafkas = stored(servers[0])
        if repr(kafkas) == repr(ours):  # NaN does not equal itself
            return
        time.sleep(0.01)
    assert repr(ours) == repr(kafkas)
