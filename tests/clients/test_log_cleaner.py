"""A running broker compacts __consumer_offsets; the committed offsets remain, also after a restart."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess

COMMITS = 400
PATIENCE_S = 60
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.roll.ms": "200",
}


def commit_many(bootstrap: str, group: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        for offset in range(1, COMMITS + 1):
            consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def committed(bootstrap: str, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        return int(consumer.committed([TopicPartition("t", 0)], 30)[0].offset)
    finally:
        consumer.close()


def wait_until_compacted(directory: Path) -> None:
    """Waits until the segments before the active one, which held hundreds of records, are nearly empty."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        segments = sorted(directory.glob("*.log"))
        size = sum(path.stat().st_size for path in segments[:-1])
        if len(segments) > 1 and int(segments[-1].stem) >= COMMITS and size < 5000:
            return
        assert time.monotonic() < deadline, [(path.name, path.stat().st_size) for path in segments]
        time.sleep(0.1)


@pytest.mark.timeout(240)
def test_consumer_offsets_are_compacted(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, properties=PROPERTIES) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
        commit_many(broker.bootstrap, "first")
        time.sleep(0.3)  # longer than log.roll.ms: the next commit goes into a new segment
        commit_many(broker.bootstrap, "second")
        wait_until_compacted(broker.data / "__consumer_offsets-0")
        broker.kill()
        broker.start()
        assert [committed(broker.bootstrap, group) for group in ("first", "second")] == [COMMITS, COMMITS]
        assert "uncleanable" not in broker.log()
