"""The worked examples of a book on three brokers: a lost controller, the spread of leaders, and preferred leaders.

The output differs from the book's, for Apache Kafka 0.10.1, as tests/tools/test_worked_examples.py lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, three
from tests.cluster.nodes import Flavour
from tests.tools.tool_host import run_ours

Partitions = list[tuple[int, list[int], set[int]]]
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    properties = {"auto.leader.rebalance.enable": "false"}
    with Cluster(tmp_path_factory.mktemp("cluster"), three(Flavour.KAFKAPY), properties=properties) as cluster:
        yield cluster


def out(cluster: Cluster, command: str, code: int = 0) -> str:
    """Returns the output of a tool, which is connected to all brokers."""
    tool, *words = command.split()
    subcommand = words[:1] if words and not words[0].startswith("-") else []
    done = run_ours(tool, *subcommand, "--bootstrap-server", cluster.bootstrap, *words[len(subcommand) :])
    assert done.code == code, done
    return done.out


def described(cluster: Cluster, topic: str) -> Partitions:
    """Returns leader, replicas and ISR of each partition, as kafka-topics prints them."""
    found = re.findall(
        r"Leader: (\S+)\tReplicas: (\S+)\tIsr: (\S+)", out(cluster, f"topics --describe --topic {topic}")
    )
    return [
        (int(leader), list(map(int, replicas.split(","))), set(map(int, isr.split(","))))
        for leader, replicas, isr in found
    ]


def await_described(cluster: Cluster, topic: str, expected: Partitions) -> None:
    """Waits until the topic is described as `expected`. A broker may learn of a change later than others."""
    cluster.wait_for(f"{topic} as {expected}", lambda: described(cluster, topic) == expected)


def brokers(cluster: Cluster) -> list[int]:
    """Returns the ids that kafka-cluster prints."""
    return sorted(int(line.split()[0]) for line in out(cluster, "cluster list-endpoints").splitlines()[1:])


def controller(cluster: Cluster) -> int:
    """Returns the leader that kafka-metadata-quorum prints."""
    done = run_ours("metadata-quorum", "--bootstrap-server", cluster.bootstrap, "describe", "--status")
    found = re.search(r"^LeaderId: +(\d+)$", done.out, re.MULTILINE)
    assert found is not None, done
    return int(found[1])


def test_leaders_are_spread_over_the_brokers(cluster: Cluster) -> None:
    """Example 3; the error of a replication factor of 4 is compared with one broker."""
    created = out(cluster, "topics --create --topic kafka-action --partitions 3 --replication-factor 2")
    assert created == "Created topic kafka-action.\n"
    cluster.wait_for_all_in_sync()
    partitions = described(cluster, "kafka-action")
    assert sorted(leader for leader, _, _ in partitions) == [1, 2, 3]
    assert all((leader, len(replicas), set(replicas)) == (replicas[0], 2, isr) for leader, replicas, isr in partitions)
    refused = out(cluster, "topics --create --topic too-many --partitions 1 --replication-factor 4", code=1)
    assert refused == (
        "Error while executing topic command : Unable to replicate the partition 4 time(s): The target replication "
        "factor of 4 cannot be reached because only 3 broker(s) are registered or some brokers have all their log "
        "directories cordoned.\n"
    )
    assert "too-many" not in out(cluster, "topics --list")


def test_a_returned_broker_leads_again_after_an_election(cluster: Cluster, tmp_path: Path) -> None:
    """Example 11: without automatic elections, the partition of a stopped broker keeps its next leader."""
    out(cluster, "topics --create --topic elected --replica-assignment 1:2,2:3,3:1")
    cluster.wait_for_all_in_sync()
    before = [(1, [1, 2], {1, 2}), (2, [2, 3], {2, 3}), (3, [3, 1], {1, 3})]
    await_described(cluster, "elected", before)
    cluster[2].stop()
    await_described(cluster, "elected", [(1, [1, 2], {1}), (3, [2, 3], {3}), (3, [3, 1], {1, 3})])
    cluster.start([2])
    cluster.wait_for_all_in_sync()
    await_described(cluster, "elected", [before[0], (3, [2, 3], {2, 3}), before[2]])
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": "elected", "partition": 1}]}))
    assert out(cluster, f"leader-election --election-type preferred --path-to-json-file {file}") == (
        "Successfully completed leader election (PREFERRED) for partitions elected-1\n"
    )
    await_described(cluster, "elected", before)


def test_a_killed_controller_is_replaced(cluster: Cluster) -> None:
    """Example 1; the ids of the live brokers are those of the registered ones that are not fenced."""
    assert brokers(cluster) == [1, 2, 3]
    killed = controller(cluster)
    cluster[killed].kill()
    left = sorted({1, 2, 3} - {killed})
    assert cluster.wait_for_quorum_leader(other_than=killed) in left
    cluster.wait_for("the end of the broker", lambda: brokers(cluster) == left)
    assert controller(cluster) in left
