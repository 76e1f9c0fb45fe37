"""A rolling restart under librdkafka's clients, on our nodes and on Apache Kafka's: which errors reach the application.

librdkafka 2.16 has two defects in transactions that are aborted while a leader or the coordinator moves. Both brokers
show them, so they are allowed here:

- It sends EndTxn for a transaction of which no partition was added, because AddPartitionsToTxn was answered with
  NOT_COORDINATOR. The answer is INVALID_TXN_STATE.
- It takes NOT_LEADER_OR_FOLLOWER for a proof that the batch is not in the log, discards the batch in the abort, and
  uses its sequence numbers again. The new leader may have the batch and answers OUT_OF_ORDER_SEQUENCE_NUMBER.

KAFKAPY_ROLLS: the number of times that each node is restarted (4).
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from tests.cluster.cluster import Cluster, three
from tests.cluster.history import History, Outcome
from tests.cluster.nodes import Flavour
from tests.cluster.traffic import TrafficConsumer, TrafficProducer, read_log, traffic

TOPIC, PARTITIONS = "rolled", 3
# librdkafka reconnects by itself after these.
CONNECTION_ERRORS = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE}
KNOWN_DEFECTS = {KafkaError.INVALID_TXN_STATE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER}


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("flavour", [Flavour.KAFKAPY, Flavour.KAFKA_43], ids=["kafkapy", "kafka"])
def test_clients_see_only_retriable_errors(flavour: Flavour, tmp_path: Path) -> None:
    errors: dict[str, list[KafkaError]] = {"plain": [], "transactional": [], "reader": []}
    history = History()
    with Cluster(tmp_path, three(flavour)) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas="2")
        bootstrap = cluster.bootstrap
        plain, transactional = [
            TrafficProducer(
                history,
                lambda: bootstrap,
                TOPIC,
                PARTITIONS,
                name,
                transaction_size=size,
                error_cb=errors[name].append,
            )
            for name, size in (("plain", 0), ("transactional", 20))
        ]
        reader = TrafficConsumer(history, bootstrap, TOPIC, "reader", "readers", error_cb=errors["reader"].append)
        with traffic(plain, transactional, reader):
            for _ in range(int(os.environ.get("KAFKAPY_ROLLS", "4"))):
                for node_id in cluster.nodes:
                    cluster[node_id].stop()
                    cluster.start([node_id])
                    cluster.wait_for_all_in_sync()
        history.check(read_log(bootstrap, TOPIC, PARTITIONS))
    done = sum(outcome is Outcome.DONE for outcome in history.transactions.values())
    print(f"\n{flavour.name}: {history.count(Outcome.DONE)} records acknowledged, {done} transactions committed")
    for name, found in errors.items():
        print(f"{name}: {dict(Counter(error.name() for error in found))}")
    print(f"transactional, fatal: {[KafkaError(code).name() for code in transactional.fatal_errors]}")
    assert done > 0
    assert all(sent.outcome is Outcome.DONE for sent in history.sent if sent.producer == "plain")
    assert not plain.fatal_errors
    assert {error.code() for error in errors["plain"] + errors["reader"]} <= CONNECTION_ERRORS
    assert set(transactional.fatal_errors) <= KNOWN_DEFECTS
