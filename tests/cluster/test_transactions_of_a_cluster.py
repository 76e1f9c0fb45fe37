"""Transactions whose coordinators, offsets and partitions are on several brokers of ours, while brokers are killed."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from kafkapy.client.consumer import Consumer as KafkapyConsumer
from kafkapy.client.producer import Producer as KafkapyProducer
from kafkapy.coordinator.partitioning import coordinator_partition
from kafkapy.errors import KafkapyError
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from tests.cluster.cluster import Cluster, three
from tests.cluster.history import History, Outcome
from tests.cluster.nodes import Flavour
from tests.cluster.traffic import TrafficProducer, read_log, traffic

pytestmark = [pytest.mark.timeout(300)]
PARTITIONS = 3
API_TIMEOUT_S = 10.0
CLIENT: dict[str, Any] = {"log_level": 0, "error_cb": lambda error: None, "topic.metadata.refresh.interval.ms": 1000}


class Chain:
    """Copies a topic in transactions, each with the group's offsets, on a thread of its own until it is stopped.

    After an error that ends the producer, or aborts its transaction, the consumer continues from the committed offsets.
    """

    def __init__(self, bootstrap: str, source: str, target: str, name: str) -> None:
        self.failure: BaseException | None = None
        self.committed = 0
        self.errors: list[str] = []
        self._bootstrap = bootstrap
        self._source = source
        self._target = target
        self._name = name
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), f"{self._name} does not end"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._run_clients()
        except BaseException as error:
            self.failure = error

    def has_copied(self, count: int) -> bool:
        """Returns whether more than `count` records were copied; raises the error that has ended the thread."""
        if self.failure is not None:
            raise self.failure
        return self.committed > count

    @abstractmethod
    def _run_clients(self) -> None:
        """Runs a consumer and a producer until an error after which both have to begin again.

        The outcome of a transaction that failed is decided by the next init_transactions of the same id.
        """


class LibrdkafkaChain(Chain):
    """Adds partitions to its transactions itself; the leaders verify that it has done so."""

    def _run_clients(self) -> None:
        consumer = Consumer(
            {
                **CLIENT,
                "bootstrap.servers": self._bootstrap,
                "group.id": self._name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 6000,
            }
        )
        producer = Producer(
            {
                **CLIENT,
                "bootstrap.servers": self._bootstrap,
                "transactional.id": self._name,
                "transaction.timeout.ms": 60000,
            }
        )
        try:
            producer.init_transactions(60)
            consumer.subscribe([self._source])
            while not self._stopped.is_set():
                messages = [each for each in consumer.consume(50, 0.5) if each.error() is None]
                if messages:
                    producer.begin_transaction()
                    for message in messages:
                        producer.produce(self._target, message.value(), key=message.key())
                    producer.send_offsets_to_transaction(
                        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), API_TIMEOUT_S
                    )
                    producer.commit_transaction(API_TIMEOUT_S)
                    self.committed += len(messages)
        except KafkaException as error:
            self.errors.append(str(error))
        finally:
            producer.purge()
            consumer.close()


class KafkapyChain(Chain):
    """Leaves adding partitions to the leaders (transaction.version 2)."""

    def _run_clients(self) -> None:
        settings: dict[str, Any] = {"bootstrap_servers": self._bootstrap, "metadata_max_age_ms": 1000}
        consumer = KafkapyConsumer(
            group_id=self._name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=6000,
            max_poll_records=50,
            **settings,
        )
        producer = KafkapyProducer(transactional_id=self._name, **settings)
        try:
            producer.init_transactions(60)
            consumer.subscribe(self._source)
            while not self._stopped.is_set():
                records = consumer.poll(0.5)
                if records:
                    producer.begin_transaction()
                    for record in records:
                        producer.send(self._target, record.value)
                    offsets = {each: consumer.position(each) for each in records.by_partition()}
                    producer.send_offsets_to_transaction(offsets, consumer.group_metadata(), API_TIMEOUT_S)
                    producer.commit_transaction(API_TIMEOUT_S)
                    self.committed += len(records)
        except KafkapyError as error:
            self.errors.append(repr(error))
        finally:
            producer.close(0)
            consumer.close()


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


def check_copy(cluster: Cluster, history: History, chain: Chain) -> None:
    """Checks the source, and waits until the chain has copied each of its records exactly once."""
    source = read_log(cluster.bootstrap, "source", PARTITIONS)
    history.check(source)
    try:
        cluster.wait_for(
            "copy of the whole topic", lambda: len(read_log(cluster.bootstrap, "target", PARTITIONS)) >= len(source)
        )
    finally:
        chain.stop()
    expected = Counter(each.value for each in source)
    copied = Counter(each.value for each in read_log(cluster.bootstrap, "target", PARTITIONS))
    assert copied == expected, (copied - expected, expected - copied, chain.errors)


@pytest.mark.parametrize("make_chain", [LibrdkafkaChain, KafkapyChain])
def test_transactions_reach_partitions_and_coordinators_on_other_brokers(
    tmp_path: Path, make_chain: type[Chain]
) -> None:
    history = History()
    with Cluster(tmp_path, three(Flavour.KAFKAPY)) as cluster:
        for topic in ("source", "target"):
            cluster.create_topic(topic, PARTITIONS, min_insync_replicas="2")
        chain = make_chain(cluster.bootstrap, "source", "target", "chain")
        with traffic(transactional_producer(cluster, history)):
            chain.start()
            cluster.wait_for("some transactions", lambda: chain.has_copied(500))
        assert {Outcome.DONE, Outcome.NOT_DONE} <= set(history.transactions.values())
        check_copy(cluster, history, chain)
        assert not chain.errors


def test_a_chain_of_transactions_copies_each_record_once_while_its_coordinators_are_killed(tmp_path: Path) -> None:
    """The clients of the chain are ours: librdkafka sometimes waits a minute for a broker that the metadata no longer
    contains."""
    history = History()
    with Cluster(tmp_path, three(Flavour.KAFKAPY)) as cluster:
        for topic in ("source", "target"):
            cluster.create_topic(topic, PARTITIONS, min_insync_replicas="2")
        chain = KafkapyChain(cluster.bootstrap, "source", "target", "chain")
        with traffic(TrafficProducer(history, lambda: cluster.bootstrap, "source", PARTITIONS, "plain", rate=400)):
            chain.start()
            cluster.wait_for("first transactions", lambda: chain.has_copied(100))
            kill_and_restart(cluster, coordinator_of_transactions(cluster, "chain"), chain, history)
            kill_and_restart(cluster, coordinator_of_groups(cluster, "chain"), chain, history)
        check_copy(cluster, history, chain)
