"""Workloads of Apache Kafka's Trogdor and of ours, from the same specification: both print the same results."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import fetched_jar, kafka_directory
from tests.ports import free_ports
from tests.tools.tool_host import Done, run_ours

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(300)]
TROGDOR = "org.apache.kafka:trogdor:4.3.0"
RATE = {"targetMessagesPerSec": 10_000, "maxMessages": 60}
TOPICS = {"activeTopics": {"NAME[1-2]": {"numPartitions": 2, "replicationFactor": 1}}}
TRANSACTIONS = {"transactionGenerator": {"type": "uniform", "messagesPerTransaction": 25}}
WORKLOADS = {
    "produce": {"class": "ProduceBenchSpec", "producerNode": "node0", **RATE, **TOPICS},
    "transactions": {"class": "ProduceBenchSpec", "producerNode": "node0", **RATE, **TOPICS, **TRANSACTIONS},
    "round-trip": {"class": "RoundTripWorkloadSpec", "clientNode": "node0", **RATE, **TOPICS},
}


def run_theirs(directory: Path, *words: str) -> Done:
    """Runs Trogdor's agent, which needs the addresses of its nodes, though none of them is called."""
    agent, coordinator = free_ports(2)
    ports = {"trogdor.agent.port": agent, "trogdor.coordinator.port": coordinator}
    platform = {
        "platform": "org.apache.kafka.trogdor.basic.BasicPlatform",
        "nodes": {"node0": {"hostname": "localhost", **ports}},
    }
    (directory / "trogdor.conf").write_text(json.dumps(platform))
    path = f"{kafka_directory('4.3.0')}/libs/*:{fetched_jar(TROGDOR)}"
    command = ["java", "-cp", path, "org.apache.kafka.trogdor.agent.Agent", "-c", str(directory / "trogdor.conf")]
    done = subprocess.run([*command, *words[1:]], capture_output=True, text=True, timeout=200, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def results(text: str) -> dict[str, Any]:
    """Returns the status of a task that has succeeded, without the latencies, which are measurements."""
    matched = re.search(r"^Task succeeded with status (\{.*?^\})$", text, re.MULTILINE | re.DOTALL)
    assert matched is not None, text
    status: dict[str, Any] = json.loads(matched[1])
    layout = [re.sub(r"[\d.]+(?=,?$)", "", line) for line in matched[1].splitlines()]
    return {"layout": layout, **{name: value for name, value in status.items() if "Latency" not in name}}


@pytest.mark.parametrize("name", WORKLOADS)
def test_both_print_the_same_results(name: str, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        found = []
        for run, topic in ((run_theirs, f"theirs-{name}"), (lambda _, *words: run_ours(*words), f"ours-{name}")):
            spec = json.loads(json.dumps(WORKLOADS[name]).replace("NAME", topic))
            spec["class"] = f"org.apache.kafka.trogdor.workload.{spec['class']}"
            path = tmp_path / f"{topic}.json"
            path.write_text(json.dumps({**spec, "durationMs": 60_000, "bootstrapServers": broker.bootstrap}))
            words = ("trogdor", "agent") if "ours" in topic else ("trogdor",)
            done = run(tmp_path, *words, "-n", "node0", "--exec", str(path))
            assert done.code == 0, done
            found.append(results(done.out))
        assert found[0] == found[1]
