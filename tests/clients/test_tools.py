"""Apache Kafka's own tools against the broker: performance, groups, offsets."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.client import Client
from tests.clients.records import make_records
from tests.peers import run_tool

Clients = Callable[[str], Client]
NewTopic = Callable[[int], str]


@pytest.mark.timeout(600)
def test_performance_tools(kafka_libs: Path, new_topic: NewTopic, bootstrap: str, record_count: int) -> None:
    topic = new_topic(3)
    count = str(record_count)
    produced = run_tool(
        kafka_libs,
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", count, "--record-size", "100", "--throughput", "-1"),
        *("--command-property", f"bootstrap.servers={bootstrap}"),
    ).stdout.decode()
    assert re.search(rf"^{count} records sent, ", produced, re.MULTILINE), produced
    consumed = run_tool(
        kafka_libs,
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", count),
    ).stdout.decode()
    header, values = consumed.strip().splitlines()[-2:]
    measured = dict(zip(header.split(", "), values.split(", "), strict=True))
    assert int(measured["data.consumed.in.nMsg"]) >= record_count


def test_consumer_groups_tool(kafka_libs: Path, clients: Clients, new_topic: NewTopic, bootstrap: str) -> None:
    topic = new_topic(2)
    group = f"group-of-{topic}"
    clients("confluent-kafka").produce(bootstrap, topic, "none", make_records(20, 2, text=True))
    clients("confluent-kafka").consume_in_group(bootstrap, topic, group, 20)

    def command(*arguments: str) -> str:
        name = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        return run_tool(kafka_libs, name, "--bootstrap-server", bootstrap, *arguments).stdout.decode()

    assert group in command("--list").split()
    rows = [line.split()[:6] for line in command("--describe", "--group", group).splitlines() if topic in line]
    assert sorted(rows) == [[group, topic, "0", "10", "10", "0"], [group, topic, "1", "10", "10", "0"]]
    reset = ("--reset-offsets", "--to-offset", "3", "--topic", f"{topic}:0", "--execute")
    assert re.search(rf"{topic}\s+0\s+3", command("--group", group, *reset))
    assert "Successful" in command("--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    rows = [line.split()[:4] for line in command("--describe", "--group", group).splitlines() if topic in line]
    assert rows == [[group, topic, "0", "3"]]
    assert "successful" in command("--delete", "--group", group)
