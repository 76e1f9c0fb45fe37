"""The counts of brokers, while the leaders of the counted partitions are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client import Producer
from kafkapy.client.reliable.audit import APPENDED, AUDIT_TOPIC, unpack_count
from kafkapy.client.reliable.topic_scan import all_partitions, scan
from tests.cluster.cluster import Cluster, three
from tests.cluster.nodes import Flavour

pytestmark = [pytest.mark.timeout(300)]
TOPIC = "audited"
PARTITIONS = 3
RECORDS = 3000


def counted(cluster: Cluster) -> int:
    """Returns how many records of the topic the brokers have counted."""
    properties = {"bootstrap.servers": cluster.bootstrap}
    records = scan(properties, dict.fromkeys(all_partitions(properties, AUDIT_TOPIC)))
    counts = (unpack_count(each.value) for each in records)
    return sum(count.number for count in counts if (count.tier, count.topic) == (APPENDED, TOPIC))


def produce(cluster: Cluster) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        for number in range(RECORDS):
            producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)


def test_each_record_is_counted_once_while_leaders_are_killed(tmp_path: Path) -> None:
    with Cluster(tmp_path, three(Flavour.KAFKAPY), properties={"kafkapy.audit.topics": TOPIC}) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        produce(cluster)
        cluster.wait_for("the first counts", lambda: counted(cluster) == RECORDS, 120)
        for victim in (1, 2):
            produce(cluster)
            cluster[victim].kill()
            produce(cluster)
            cluster.start([victim])
            for partition in range(PARTITIONS):
                cluster.wait_for_isr(TOPIC, partition)
        expected = 5 * RECORDS
        cluster.wait_for("all counts", lambda: counted(cluster) >= expected, 120)
        for node_id in (1, 2, 3):  # each broker writes, and the next leader begins where it has ended
            cluster[node_id].stop()
            cluster.start([node_id])
            for partition in range(PARTITIONS):
                cluster.wait_for_isr(TOPIC, partition)
        produce(cluster)
        cluster.wait_for("the last counts", lambda: counted(cluster) >= expected + RECORDS, 120)
        assert counted(cluster) == expected + RECORDS
