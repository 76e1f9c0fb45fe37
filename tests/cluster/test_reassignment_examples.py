"""The worked examples of a book on reassignments, by our tool on three nodes, and racks of consumers.

Each node has two log directories.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import Consumer
from kafkapy.client.admin import Admin, ConfigResource, NewTopic, ResourceType
from kafkapy.config.throttle_keys import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from kafkapy.types import TopicPartition
from tests.cluster.cluster import Cluster, three
from tests.cluster.nodes import Flavour
from tests.cluster.reassignments import create_filled_topic, replicas_of, size_on_disk, wait_until_reassigned
from tests.tools.tool_host import run_ours

pytestmark = pytest.mark.timeout(300)
THROTTLES = {LEADER_RATE, FOLLOWER_RATE, LEADER_REPLICAS, FOLLOWER_REPLICAS}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    # Small fetches, so that a throttle of 1 KB/s is felt with little data.
    properties = {"replica.fetch.max.bytes": "20000"}
    nodes = Cluster(tmp_path_factory.mktemp("cluster"), three(Flavour.KAFKAPY), properties=properties)
    for node in nodes.nodes.values():
        node.properties["log.dirs"] = f"{node.log_dir},{node.directory / 'more'}"
        node.write_config({"controller.quorum.bootstrap.servers": nodes.bootstrap_controllers})
    with nodes:
        yield nodes


def reassign(cluster: Cluster, *words: str) -> str:
    """Runs our tool and returns its output."""
    done = run_ours("reassign-partitions", "--bootstrap-server", cluster.bootstrap, *words)
    assert done.code == 0, done
    return done.out


def plan(path: Path, topic: str, replicas: list[list[int]], **more: Any) -> list[str]:
    """Writes a plan for the partitions of a topic; returns the flag that names its file."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": each, **more} for number, each in enumerate(replicas)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return ["--reassignment-json-file", str(path)]


def throttles(admin: Admin, topic: str) -> set[str]:
    """Returns the throttles that the topic and the brokers have."""
    resources = [ConfigResource(ResourceType.TOPIC, topic)]
    resources += [ConfigResource(ResourceType.BROKER, str(number)) for number in (1, 2, 3)]
    described = admin.describe_configs(resources).check()
    own = (1, 2)  # of the topic, and of the broker while it runs
    return {
        key
        for entries in described.values()
        for key, each in entries.items()
        if key in THROTTLES and each.source in own
    }


def test_a_replication_factor_is_raised(cluster: Cluster, tmp_path: Path) -> None:
    topic, targets = "partition-replica-foo", [[1, 2], [2, 3], [3, 1], [1, 2], [2, 3], [3, 1]]
    create_filled_topic(cluster, topic, {number: each[:1] for number, each in enumerate(targets)}, 30_000)
    flag = plan(tmp_path / "plan.json", topic, targets)
    assert "Successfully started partition reassignments for" in reassign(cluster, "--execute", *flag)
    wait_until_reassigned(cluster)
    assert reassign(cluster, "--verify", *flag).count("is completed.") == len(targets)
    for number, replicas in enumerate(targets):
        found = cluster.wait_for_isr(topic, number, replicas)
        assert (found.leader, list(found.replicas)) == (replicas[0], replicas)


def test_a_broker_is_emptied_and_used_again_with_a_throttle(cluster: Cluster, tmp_path: Path) -> None:
    topic, path = "reassign-partitions", tmp_path / "plan.json"
    create_filled_topic(cluster, topic, {0: [1], 1: [2], 2: [3]}, 300_000)
    (tmp_path / "topics.json").write_text(json.dumps({"topics": [{"topic": topic}], "version": 1}))
    words = ("--generate", "--topics-to-move-json-file", str(tmp_path / "topics.json"), "--broker-list", "1,3")
    former, proposal = (json.loads(line) for line in reassign(cluster, *words).splitlines() if line.startswith("{"))
    assert [each["replicas"] for each in former["partitions"]] == [[1], [2], [3]]
    replicas = [each["replicas"] for each in proposal["partitions"]]
    assert {broker for each in replicas for broker in each} == {1, 3}
    flag = plan(path, topic, replicas)
    reassign(cluster, "--execute", *flag)
    wait_until_reassigned(cluster)
    reassign(cluster, "--verify", *flag)
    assert size_on_disk(cluster[2], topic) == 0

    flag = plan(path, topic, [[1], [2], [3]])
    assert "The inter-broker throttle limit was set to 1024 B/s" in reassign(
        cluster, "--execute", "--throttle", "1024", *flag
    )
    assert "is still in progress" in reassign(cluster, "--verify", *flag)
    with cluster.admin() as admin:
        assert throttles(admin, topic) == THROTTLES
    reassign(cluster, "--execute", "--additional", "--throttle", "100000000", *flag)
    wait_until_reassigned(cluster)
    assert reassign(cluster, "--verify", *flag).count("is completed.") == 3
    with cluster.admin() as admin:
        assert throttles(admin, topic) == set()


def test_a_replica_moves_to_a_log_directory_of_another_broker(cluster: Cluster, tmp_path: Path) -> None:
    topic, target = "between-disks", str(cluster[3].directory / "more")
    create_filled_topic(cluster, topic, {0: [1]}, 100_000)
    flag = plan(tmp_path / "plan.json", topic, [[3]], log_dirs=[target])
    assert f"Successfully started moving log directory to {target}" in reassign(
        cluster, "--execute", "--replica-alter-log-dirs-throttle", "50000000", *flag
    )
    wait_until_reassigned(cluster)
    done = f"Reassignment of replica {topic}-0-3 completed successfully."
    cluster.wait_for("move", lambda: done in reassign(cluster, "--verify", *flag))
    partition = TopicPartition(topic, 0)
    assert replicas_of(cluster, [partition]) == {partition: [3]}
    assert (Path(target) / f"{topic}-0").is_dir()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_consumers_read_partitions_in_their_racks(cluster: Cluster, strategy: str) -> None:
    """Nodes 1 to 3 are in the racks r1 to r3. Each consumer gets the partitions with replicas in its rack."""
    topic = f"racks-{strategy}"
    with cluster.admin() as admin:
        admin.create_topics([NewTopic(topic, assignments={0: [3], 1: [1], 2: [2], 3: [3], 4: [1], 5: [2]})]).check()
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": topic,
        "group.protocol": "classic",
        "partition.assignment.strategy": strategy,
    }
    consumers = [Consumer({**settings, "client.rack": f"r{number}"}) for number in (1, 2, 3)]
    wanted = [[1, 4], [2, 5], [0, 3]]

    def is_assigned() -> bool:
        for consumer in consumers:
            consumer.poll(0.05)
        return [sorted(each.partition for each in consumer.assignment()) for consumer in consumers] == wanted

    try:
        for consumer in consumers:
            consumer.subscribe([topic])
        cluster.wait_for("assignment by racks", is_assigned)
    finally:
        for consumer in consumers:
            consumer.close()
