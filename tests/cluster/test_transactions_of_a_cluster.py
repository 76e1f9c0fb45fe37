"""Transactions whose coordinators, offsets and partitions are on several brokers of ours, while brokers are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.coordinator.partitioning import coordinator_partition
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from tests.cluster.chain import Chain, KafkapyChain, LibrdkafkaChain, check_copy
from tests.cluster.cluster import Cluster, three
from tests.cluster.history import History, Outcome
from tests.cluster.nodes import Flavour
from tests.cluster.traffic import TrafficProducer, read_log, traffic

pytestmark = [pytest.mark.timeout(300)]
PARTITIONS = 3


def coordinator_of_transactions(cluster: Cluster, transactional_id: str) -> int:
    """Returns the broker that coordinates a transactional id."""
    return cluster.wait_for_leader(TRANSACTION_STATE_TOPIC, coordinator_partition(transactional_id, PARTITIONS))


def coordinator_of_groups(cluster: Cluster, group_id: str) -> int:
    """Returns the broker that coordinates a group."""
    return cluster.wait_for_leader(GROUP_METADATA_TOPIC, coordinator_partition(group_id, PARTITIONS))


def kill_and_restart(cluster: Cluster, node_id: int, chain: Chain, history: History) -> None:
    """Kills a broker, and starts it again after producer and chain have continued without it."""
    cluster[node_id].kill()
    committed, acknowledged = chain.committed, history.count(Outcome.DONE)
    cluster.wait_for("progress of the chain", lambda: chain.has_copied(committed + 100))
    cluster.wait_for("progress of the producer", lambda: history.count(Outcome.DONE) > acknowledged + 100)
    cluster.start([node_id])
    for topic in ("source", "target", TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC):
        for partition in range(PARTITIONS):
            cluster.wait_for_isr(topic, partition)


def transactional_producer(cluster: Cluster, history: History) -> TrafficProducer:
    """Returns a producer of librdkafka that aborts every third transaction."""
    return TrafficProducer(
        history, lambda: cluster.bootstrap, "source", PARTITIONS, "transactional", rate=400, transaction_size=20
    )


def check_history_and_copy(cluster: Cluster, history: History, chain: Chain) -> None:
    """Checks the source, and waits until the chain has copied each of its records exactly once."""
    source = read_log(cluster.bootstrap, "source", PARTITIONS)
    history.check(source)
    check_copy(cluster, source, chain, PARTITIONS)


@pytest.mark.parametrize("make_chain", [LibrdkafkaChain, KafkapyChain])
def test_transactions_reach_partitions_and_coordinators_on_other_brokers(
    tmp_path: Path, make_chain: type[Chain]
) -> None:
    history = History()
    with Cluster(tmp_path, three(Flavour.KAFKAPY)) as cluster:
        for topic in ("source", "target"):
            cluster.create_topic(topic, PARTITIONS, min_insync_replicas="2")
        chain = make_chain(lambda: cluster.bootstrap, "source", "target", "chain")
        with traffic(transactional_producer(cluster, history)):
            chain.start()
            cluster.wait_for("some transactions", lambda: chain.has_copied(500))
        assert {Outcome.DONE, Outcome.NOT_DONE} <= set(history.transactions.values())
        check_history_and_copy(cluster, history, chain)
        assert not chain.errors


def test_a_chain_of_transactions_copies_each_record_once_while_its_coordinators_are_killed(tmp_path: Path) -> None:
    """The clients of the chain are ours: librdkafka sometimes waits a minute for a broker that the metadata no longer
    contains."""
    history = History()
    with Cluster(tmp_path, three(Flavour.KAFKAPY)) as cluster:
        for topic in ("source", "target"):
            cluster.create_topic(topic, PARTITIONS, min_insync_replicas="2")
        chain = KafkapyChain(lambda: cluster.bootstrap, "source", "target", "chain")
        with traffic(TrafficProducer(history, lambda: cluster.bootstrap, "source", PARTITIONS, "plain", rate=400)):
            chain.start()
            cluster.wait_for("first transactions", lambda: chain.has_copied(100))
            kill_and_restart(cluster, coordinator_of_transactions(cluster, "chain"), chain, history)
            kill_and_restart(cluster, coordinator_of_groups(cluster, "chain"), chain, history)
        check_history_and_copy(cluster, history, chain)
