"""A directory with quotas passes between Apache Kafka and kafkapy: both describe, enforce and change the same quotas.

The quotas are those of Kafka's documentation, set with Kafka's own tool on kafkapy.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess
from tests.swap.swap import HEAP, end
from tests.wire.test_quota_changes import alter, stored
from tests.wire.test_quotas import TOPIC, create, produce

BOTH = "producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=200"
EXAMPLES = (
    (BOTH, "--entity-type users --entity-name user1 --entity-type clients --entity-name clientA"),
    (BOTH, "--entity-type users --entity-name user1"),
    (BOTH, "--entity-type clients --entity-name clientA"),
    ("producer_byte_rate=4096", "--entity-type users --entity-name ANONYMOUS --entity-type clients --entity-default"),
    ("producer_byte_rate=1e9", "--entity-type users --entity-default"),
    ("controller_mutation_rate=5.5", "--entity-type clients --entity-default"),
    ("connection_creation_rate=200", "--entity-type ips --entity-name 127.0.0.9"),
)
CONFIGS = {"consumer_byte_rate": 2048.0, "producer_byte_rate": 1024.0, "request_percentage": 200.0}
STORED = [
    ([("client-id", "")], {"controller_mutation_rate": 5.5}),
    ([("client-id", ""), ("user", "ANONYMOUS")], {"producer_byte_rate": 4096.0}),
    ([("client-id", "clientA")], CONFIGS),
    ([("client-id", "clientA"), ("user", "user1")], CONFIGS),
    ([("ip", "127.0.0.9")], {"connection_creation_rate": 200.0}),
    ([("user", "")], {"producer_byte_rate": 1e9}),
    ([("user", "user1")], CONFIGS),
]


def shown(quotas: list[tuple[list[tuple[str, str]], dict[str, float]]]) -> list[object]:
    return sorted((entity, sorted(values.items())) for entity, values in quotas)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_quotas_are_kept_when_the_broker_is_replaced(kafka_43: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(kafka_43, tmp_path, dynamic=True, heap=HEAP)
    ours = BrokerProcess(tmp_path, config=kafka.config, port=kafka.port)
    expected = list(STORED)
    turns: list[ServerProcess] = [ours, kafka, ours, kafka]
    for turn, server in enumerate(turns, 1):
        server.start()
        try:
            if turn == 1:
                create(server, 7, {TOPIC: 1})
                for configs, entity in EXAMPLES:
                    said = kafka.tool(
                        "kafka.admin.ConfigCommand", "--bootstrap-server", server.bootstrap, "--alter",
                        "--add-config", configs, *entity.split(),
                    )  # fmt: skip
                    assert "Completed updating" in said
            assert shown(stored_soon(server, expected)) == shown(expected), f"turn {turn}"
            # Each client id has a bucket of 4096 bytes per second, of which ten seconds pass at once.
            assert produce(server, f"client-{turn}", 30_000) == 0
            assert produce(server, f"client-{turn}", 30_000) > 1000
            user = f"é {turn}"
            assert alter(server, 1, [([("user", user)], [("producer_byte_rate", 7.0)])])[0][1] == 0
            expected.append(([("user", user)], {"producer_byte_rate": 7.0}))
            if turn > 1:
                alter(server, 1, [([("user", f"é {turn - 1}")], [("producer_byte_rate", None)])])
                expected.remove(([("user", f"é {turn - 1}")], {"producer_byte_rate": 7.0}))
            assert shown(stored_soon(server, expected)) == shown(expected), f"turn {turn}"
        finally:
            end(server, killed=False)


def stored_soon(
    server: ServerProcess, expected: list[tuple[list[tuple[str, str]], dict[str, float]]]
) -> list[tuple[list[tuple[str, str]], dict[str, float]]]:
    """Returns the quotas of the server as soon as they are the expected ones, or after many attempts."""
    for _ in range(300):
        found = [(entity, dict(values)) for entity, values in stored(server)]
        if shown(found) == shown(expected):
            break
    return found
