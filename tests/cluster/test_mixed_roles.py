"""Separate roles in different programs: our broker under Apache Kafka's controller, and their broker under ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client import Consumer, Producer
from tests.cluster.cluster import Cluster, Spec, Voters
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]
OURS, THEIRS = Flavour.KAFKAPY, Flavour.KAFKA_43


@pytest.mark.parametrize(("controller", "broker"), [(THEIRS, OURS), (OURS, THEIRS)], ids=["our broker", "their broker"])
def test_a_broker_serves_clients_under_the_other_programs_controller(
    tmp_path: Path, controller: Flavour, broker: Flavour
) -> None:
    with Cluster(tmp_path, [Spec(controller, CONTROLLER), Spec(broker, BROKER)], voters=Voters.STATIC) as cluster:
        cluster.create_topic("t", 3, 1)
        with Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "chain"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(30):
                producer.send("t", value=str(number).encode())
            producer.commit_transaction()
        settings = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
        with Consumer(settings) as consumer:
            consumer.subscribe(["t"])
            found: list[int] = []
            while len(found) < 30:
                found += [int(record.value) for record in consumer.poll(1.0)]
            consumer.commit()
        assert sorted(found) == list(range(30))
        ours = cluster[2] if broker is OURS else cluster[1]
        assert cluster[2].stop() in (0, 143)
        assert cluster[1].stop() in (0, 143)
        assert "Traceback" not in ours.log()
