"""Share groups in a directory that passes between kafkapy and Apache Kafka: their states and start offsets survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client import AcknowledgeType, ShareConsumer
from tests.broker_process import BrokerProcess
from tests.clients.share_members import PROPERTIES, WAIT_S, Queue
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess
from tests.swap.dump import dump
from tests.swap.swap import HEAP

SETTINGS = {"share.acknowledgement.mode": "explicit", "share.acquire.mode": "record_limit"}
KINDS = (AcknowledgeType.RELEASE, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)
RECORDS = 12


@pytest.mark.peer
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_begun_by_kafka", [False, True], ids=["kafkapy-first", "kafka-first"])
def test_a_group_goes_on_with_the_next_broker(is_begun_by_kafka: bool, kafka_43: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(kafka_43, tmp_path, dynamic=True, heap=HEAP, properties=PROPERTIES)
    ours = BrokerProcess(tmp_path, config=kafka.config, port=kafka.port)
    turns: list[ServerProcess] = [kafka, ours, kafka] if is_begun_by_kafka else [ours, kafka, ours]
    queue: Queue | None = None
    for turn, server in enumerate(turns):
        with server:
            if queue is None:
                queue = Queue(server.bootstrap)
                queue.send(*map(str, range(RECORDS)))
            work(queue, turn)
            server.kill()
        if server is ours:
            log = next(tmp_path.glob("logs/__share_group_state-0/*.log"))
            decoded = dump(kafka_43, [log], "--share-group-state-decoder")
            assert '"deliveryState":' in decoded, decoded[-2000:]


def work(queue: Queue, turn: int) -> None:
    """Reads what the brokers before have left: releases one record, accepts one and rejects one.

    Record 0 is released by each broker, so its delivery count is the number of brokers that have delivered it.
    """
    settings = {**SETTINGS, "max.poll.records": str(len(KINDS))}
    with ShareConsumer(settings, bootstrap_servers=queue.bootstrap, group_id=queue.group) as consumer:
        consumer.subscribe(queue.topic)
        records = consumer.poll(WAIT_S)
        found = [(record.offset, record.delivery_count) for record in records]
        assert found == [(0, turn + 1), (2 * turn + 1, 1), (2 * turn + 2, 1)]
        for record, kind in zip(records, KINDS, strict=True):
            consumer.acknowledge(record, kind)
        assert not any(consumer.commit().values())
