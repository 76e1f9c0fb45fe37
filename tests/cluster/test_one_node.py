"""A cluster of one node of kafkapy: nothing acknowledged is lost while it is killed, paused and restarted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Spec, Voters
from tests.cluster.history import History, Outcome
from tests.cluster.traffic import TrafficConsumer, TrafficProducer, read_log, traffic

TOPIC, PARTITIONS = "histories", 2


@pytest.mark.timeout(300)
@pytest.mark.parametrize("voters", Voters, ids=lambda voters: voters.name.lower())
def test_one_node_keeps_its_promises(tmp_path: Path, voters: Voters) -> None:
    history = History()
    with Cluster(tmp_path, [Spec()], voters=voters) as cluster:
        cluster.wait_for_voters(1)
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=1)
        clients = [
            TrafficProducer(history, lambda: cluster.bootstrap, TOPIC, PARTITIONS, "plain"),
            TrafficProducer(
                history, lambda: cluster.bootstrap, TOPIC, PARTITIONS, "transactional", transaction_size=10
            ),
            TrafficConsumer(history, cluster.bootstrap, TOPIC, "reader", "readers"),
        ]
        with traffic(*clients):
            cluster[1].kill()
            cluster[1].start()
            cluster.wait_for_leader(TOPIC)
            cluster[1].pause()
            cluster[1].resume()
            cluster[1].restart()
            cluster.wait_for_leader(TOPIC)
            cluster.wait_for("transaction", lambda: Outcome.DONE in history.transactions.values())
        history.check(read_log(cluster.bootstrap, TOPIC, PARTITIONS))
        assert history.count(Outcome.DONE) > 0
