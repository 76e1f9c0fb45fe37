"""Trogdor's workloads against a broker, from their specifications."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kafkapy.client import TopicPartition
from kafkapy.client.admin import LATEST, Admin
from tests.broker_process import BrokerProcess
from tests.tools.tool_host import Done, run_here


def run_workload(capsys: pytest.CaptureFixture[str], broker: BrokerProcess, name: str, **fields: Any) -> Done:
    spec = {"class": f"org.apache.kafka.trogdor.workload.{name}Spec", "bootstrapServers": broker.bootstrap, **fields}
    return run_here(capsys)("trogdor", "agent", "--exec", json.dumps(spec))


def status_of(done: Done) -> dict[str, Any]:
    assert done.code == 0, done
    matched = re.search(r"^Task succeeded with status (\{.*\})$", done.out, re.MULTILINE | re.DOTALL)
    assert matched is not None
    status: dict[str, Any] = json.loads(matched[1])
    return status


@pytest.mark.parametrize(
    "transactions", [{}, {"transactionGenerator": {"type": "uniform", "messagesPerTransaction": 20}}]
)
def test_produced_records_are_consumed(broker: BrokerProcess, capsys, transactions: dict[str, Any]) -> None:
    names = [f"bench{'-txn' if transactions else ''}{number}" for number in (1, 2)]
    pattern = names[0][:-1] + "[1-2]"
    topics = {pattern: {"numPartitions": 2, "replicationFactor": 1}}
    done = run_workload(
        capsys,
        broker,
        "ProduceBench",
        targetMessagesPerSec=100_000,
        maxMessages=60,
        activeTopics=topics,
        **transactions,
    )
    status = status_of(done)
    assert (status["totalSent"], status["transactionsCommitted"]) == (60, 3 if transactions else 0)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        places = [TopicPartition(name, number) for name in names for number in (0, 1)]
        ends = admin.list_offsets(dict.fromkeys(places, LATEST)).check()
    assert all(each.offset >= 15 for each in ends.values())
    conf = {"isolation.level": "read_committed"}
    for active in ([pattern], [f"{pattern}:[0-1]"]):
        done = run_workload(
            capsys,
            broker,
            "ConsumeBench",
            targetMessagesPerSec=100_000,
            maxMessages=60,
            activeTopics=active,
            consumerConf=conf,
        )
        read = status_of(done)["consumer.0"]
        assert (read["totalMessagesReceived"], read["averageMessageSizeBytes"]) == (60, 516)
        assert len(read["assignedPartitions"]) == 4


def test_a_round_trip_receives_what_it_sends(broker: BrokerProcess, capsys) -> None:
    topics = {"round-trip": {"numPartitions": 3, "replicationFactor": 1}}
    for _ in range(2):  # the second run ignores the records of the first
        done = run_workload(
            capsys, broker, "RoundTripWorkload", targetMessagesPerSec=100_000, maxMessages=50, activeTopics=topics
        )
        assert status_of(done) == {"totalUniqueSent": 50, "totalReceived": 50}


@pytest.mark.parametrize("action", ["CONNECT", "FETCH_METADATA"])
def test_connections_are_opened(broker: BrokerProcess, capsys, action: str) -> None:
    done = run_workload(
        capsys, broker, "ConnectionStress", targetConnectionsPerSec=50, numThreads=2, action=action, durationMs=500
    )
    status = status_of(done)
    assert status["totalConnections"] > 0
    assert status["totalFailedConnections"] == 0


def test_a_failure_is_printed_with_the_status(broker: BrokerProcess, capsys) -> None:
    done = run_workload(
        capsys,
        broker,
        "ProduceBench",
        targetMessagesPerSec=1,
        maxMessages=1,
        activeTopics={"a b": {"numPartitions": 1, "replicationFactor": 1}},
    )
    assert done.code == 1
    assert "Task failed with status" in done.out
    assert "and error" in done.out
