"""`kafkapy rebalance` on a cluster: a dry run, a throttled execution, an emptied broker, Ctrl-C, the controller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, ConfigResource, NewTopic, ResourceType
from kafkapy.config.throttle_keys import FOLLOWER_RATE, LEADER_REPLICAS
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import BOTH, BROKER, Flavour
from tests.tools.tool_host import Done, run_ours

pytestmark = pytest.mark.timeout(240)
# More bytes in each partition than one fetch returns: a throttled move does not end.
PARTITIONS, RECORDS, SIZE = 6, 30, 100_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    specs = [Spec(Flavour.KAFKAPY, BOTH)] * 3 + [Spec(Flavour.KAFKAPY, BROKER)]
    with Cluster(tmp_path_factory.mktemp("cluster"), specs) as cluster:
        with cluster.admin() as admin:
            assigned = {number: [1, 2] for number in range(PARTITIONS)}
            admin.create_topics([NewTopic("t", assignments=assigned, configs={"min.insync.replicas": "1"})]).check()
        with Producer(bootstrap_servers=cluster.bootstrap) as producer:
            for number in range(RECORDS):
                for partition in range(PARTITIONS):
                    producer.send("t", b"%d" % number + bytes(SIZE), partition=partition)
        yield cluster


def rebalance(cluster: Cluster, *words: str) -> Done:
    return run_ours("rebalance", "--bootstrap-server", cluster.bootstrap, "--topics", "t", *words)


def replicas(cluster: Cluster) -> dict[int, tuple[int, ...]]:
    with cluster.admin() as admin:
        return {each.partition: each.replicas for each in admin.describe_topics(["t"])["t"].partitions}


def throttles(admin: Admin) -> list[str | None]:
    """Returns the values of two of the keys that an execution sets."""
    topic, broker = ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.BROKER, "2")
    found = admin.describe_configs([topic, broker]).check()
    rate = found[broker].get(FOLLOWER_RATE)
    return [found[topic][LEADER_REPLICAS].value, None if rate is None else rate.value]


def test_a_plan_is_shown_executed_and_interrupted(cluster: Cluster) -> None:
    before = replicas(cluster)
    done = rebalance(cluster, "--goals", "disk,traffic,leaders", "--sample-seconds", "0.1")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "Nothing was moved. To carry out the plan, add --execute"
    assert replicas(cluster) == before

    done = rebalance(cluster, "--execute", "--throttle", "50000000")
    assert (done.code, done.err) == (0, ""), done.out
    cluster.wait_for_all_in_sync()
    counts = Counter(broker for each in replicas(cluster).values() for broker in each)
    assert counts == {1: 3, 2: 3, 3: 3, 4: 3}
    with cluster.admin() as admin:
        described = admin.describe_topics(["t"])["t"].partitions
        assert [each.leader for each in described] == [each.replicas[0] for each in described]
        assert max(Counter(each.leader for each in described).values()) == 2
        assert throttles(admin) == ["", None]
    assert "The cluster is balanced" in rebalance(cluster).out

    before = replicas(cluster)
    command = [sys.executable, "-m", "kafkapy", "rebalance", "--bootstrap-server", cluster.bootstrap, "--topics", "t"]
    words = [*command, "--empty", "4", "--execute", "--throttle", "1000", "--concurrent-moves", "1", "--goals", "disk"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process, cluster.admin() as admin:
        assert process.stdout is not None
        cluster.wait_for("a move", lambda: bool(admin.list_partition_reassignments()))
        cluster.wait_for("the throttle", lambda: throttles(admin)[1] == "1000")
        os.kill(process.pid, signal.SIGINT)
        out = process.stdout.read()
        assert process.wait() == 128 + signal.SIGINT
        assert "Interrupted: the moves in progress are cancelled" in out
        assert "Completed: 0 partitions\nCancelled, with their former replicas: 1 partition (t-" in out
        assert "Not begun: " in out
        assert not admin.list_partition_reassignments()
        assert throttles(admin) == ["", None]
    assert replicas(cluster) == before

    done = rebalance(cluster, "--empty", "4", "--execute", "--json")
    assert (done.code, done.err) == (0, "")
    assert not [each for each in replicas(cluster).values() if 4 in each]


def test_the_active_controller_is_moved(cluster: Cluster) -> None:
    leader = cluster.wait_for_quorum_leader()
    target = leader % 3 + 1

    def move(*words: str) -> Done:
        return run_ours("rebalance", *words, "--move-controller", str(target))

    done = move("--bootstrap-server", cluster.bootstrap)
    assert done == (0, f"Node {target} is the active controller, instead of node {leader}\n", "")
    assert cluster.wait_for_quorum_leader() == target
    followers_first = sorted(cluster.controllers, key=lambda each: each.node_id == target)
    addresses = ",".join(each.controller_address for each in followers_first)
    assert move("--bootstrap-controller", addresses).out == f"Node {target} is the active controller already\n"
    leader, target = target, leader
    done = move("--bootstrap-controller", addresses)
    assert done == (0, f"Node {target} is the active controller, instead of node {leader}\n", "")
    cluster.create_topic("after", replication_factor=3)
    target = 4
    done = move("--bootstrap-server", cluster.bootstrap)
    assert (done.code, done.err) == (1, "Node 4 is not a voter: the voters are 1, 2, 3\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--goals", "disk,cpu"), "Unknown goal cpu: the goals are disk, traffic, leaders"),
        (("--keep", "t"), "t does not name brokers of a topic: TOPIC=BROKER,BROKER is required"),
        (("--empty", "x"), "x is not a list of broker ids, such as 1,2,3"),
        (("--tolerance", "100"), "--tolerance is a percentage below 100"),
        (("--concurrent-moves", "0"), "--concurrent-moves must be at least 1"),
        (("--move-controller", "1", "--empty", "1"), "--empty has no meaning together with --move-controller"),
        (("--empty", "9"), "The cluster has no live broker 9"),
        (("--keep", "nope=1"), "The cluster has no topic nope"),
    ],
)
def test_words_that_make_no_plan(cluster: Cluster, words: tuple[str, ...], reason: str) -> None:
    done = run_ours("rebalance", "--bootstrap-server", cluster.bootstrap, *words)
    assert (done.code, done.err.splitlines()[0]) == (1, reason)
