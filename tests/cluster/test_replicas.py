"""The replicas of three nodes stay equal, byte for byte, while nodes die and return under a producer with acks=all."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client.producer import Producer
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import Flavour

TOPIC, PARTITIONS, NODES = "t", 3, (1, 2, 3)
OURS, THEIRS = Spec(Flavour.KAFKAPY), Spec(Flavour.KAFKA_43)


def log_bytes(root: Path, node_id: int, partition: int) -> bytes:
    directory = root / f"node-{node_id}" / "logs" / f"{TOPIC}-{partition}"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def wait_for_equal_replicas(cluster: Cluster, root: Path) -> None:
    def are_equal() -> bool | None:
        return (
            all(len({log_bytes(root, node_id, partition) for node_id in NODES}) == 1 for partition in range(PARTITIONS))
            or None
        )

    for partition in range(PARTITIONS):
        cluster.wait_for_isr(TOPIC, partition, NODES)
    cluster.wait_for("equal replicas", are_equal)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "specs", [[OURS, OURS, OURS], pytest.param([OURS, THEIRS, OURS], marks=pytest.mark.peer)], ids=["ours", "mixed"]
)
def test_replicas_stay_equal_while_nodes_die_and_return(tmp_path: Path, specs: list[Spec]) -> None:
    with Cluster(tmp_path, specs) as cluster:
        cluster.wait_for_voters(*NODES)
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3, **{"min.insync.replicas": "2"})
        with Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"}) as producer:

            def produce(count: int, size: int) -> None:
                sent = [producer.send(TOPIC, value=bytes([number % 256]) * size) for number in range(count)]
                producer.flush()
                for future in sent:
                    assert future.result(60).offset >= 0

            produce(3000, 300)
            wait_for_equal_replicas(cluster, tmp_path)
            for node_id in NODES:
                cluster[node_id].kill()
                produce(300, 30)
                cluster[node_id].start()
                wait_for_equal_replicas(cluster, tmp_path)
            for node_id in NODES:
                cluster[node_id].stop()
                produce(300, 30)
                cluster[node_id].start()
                wait_for_equal_replicas(cluster, tmp_path)
