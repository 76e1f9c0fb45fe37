"""Compacted topics whose directory passes from one broker to the other: each broker continues cleaning where the other
stopped."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess
from tests.swap.dump import dump
from tests.swap.swap import HEAP

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
QUICK = {"log.cleaner.backoff.ms": "200", "log.cleaner.min.cleanable.ratio": "0.01"}
TOPIC_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "delete.retention.ms": "86400000"}
KEYS = 150
TIMEOUT = 60


class CompactedTopics:
    """One topic for each codec, and the newest value of each of its keys."""

    def __init__(self) -> None:
        self.latest: dict[str, dict[bytes, bytes | None]] = {}
        self._chance = random.Random(7)

    def create(self, bootstrap: str) -> None:
        topics = [NewTopic(codec, 1, 1, config=TOPIC_CONFIG) for codec in CODECS]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for topic, future in admin.create_topics(topics).items():
            future.result(TIMEOUT)
            self.latest[topic] = {}

    def write(self, bootstrap: str, *, with_transactions: bool) -> None:
        """Writes values of a kilobyte and tombstones, and then more than a segment, so that the records before are in
        closed segments."""
        for codec in CODECS:
            settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 5}
            producer = Producer({**settings, "enable.idempotence": True})
            self._write_some(producer, codec, 1500)
            producer.flush(TIMEOUT)
            if with_transactions:
                self._transact({**settings, "transactional.id": codec}, codec)
            producer = Producer(settings)
            self._write_some(producer, codec, 1200)
            producer.flush(TIMEOUT)

    def _write_some(self, producer: Producer, topic: str, count: int) -> dict[bytes, bytes | None]:
        written: dict[bytes, bytes | None] = {}
        for _ in range(count):
            key = b"key-%d" % self._chance.randrange(KEYS)
            value = None if self._chance.random() < 0.1 else self._chance.randbytes(1000)
            producer.produce(topic, key=key, value=value)
            producer.poll(0)
            written[key] = value
        self.latest[topic].update(written)
        return written

    def _transact(self, settings: dict[str, object], topic: str) -> None:
        producer = Producer(settings)
        producer.init_transactions(TIMEOUT)
        for commit in (True, False, True):
            before = dict(self.latest[topic])
            producer.begin_transaction()
            self._write_some(producer, topic, 100)
            producer.flush(TIMEOUT)  # otherwise an abort would drop unsent records, and the log would have none
            if commit:
                producer.commit_transaction(TIMEOUT)
            else:
                producer.abort_transaction(TIMEOUT)
                self.latest[topic] = before

    def check(self, bootstrap: str, *, at_most: int) -> None:
        """Checks that a consumer reads the newest value of each key, and at most `at_most` records."""
        for topic, latest in self.latest.items():
            found: dict[bytes, bytes | None] = {}
            count = 0
            for key, value in read_all(bootstrap, topic):
                found[key] = value
                count += 1
            values = {key: value for key, value in found.items() if value is not None}
            assert values == {key: value for key, value in latest.items() if value is not None}, topic
            assert count <= at_most, f"{topic} was not compacted: {count} records"


def read_all(bootstrap: str, topic: str) -> list[tuple[bytes, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    records: list[tuple[bytes, bytes | None]] = []
    try:
        while True:
            message = consumer.poll(TIMEOUT)
            assert message is not None, "no end of the partition"
            if message.error() is not None:
                return records
            records.append((message.key(), message.value()))
    finally:
        consumer.close()


def wait_until_clean(log_dir: Path) -> None:
    """Waits until the cleaner has reached the active segment of every topic."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        rows = (log_dir / "cleaner-offset-checkpoint").read_text().splitlines()[2:] if has_checkpoint(log_dir) else []
        cleaned = {row.split()[0]: int(row.split()[2]) for row in rows}
        active = {codec: max(int(path.stem) for path in (log_dir / f"{codec}-0").glob("*.log")) for codec in CODECS}
        if all(cleaned.get(codec, -1) >= active[codec] for codec in CODECS):
            return
        assert time.monotonic() < deadline, (cleaned, active)
        time.sleep(0.2)


def has_checkpoint(log_dir: Path) -> bool:
    return (log_dir / "cleaner-offset-checkpoint").exists()


@pytest.mark.timeout(900)
def test_each_cleans_on_where_the_other_stopped(kafka_43: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(kafka_43, tmp_path, dynamic=True, heap=HEAP, properties=QUICK)
    ours = BrokerProcess(tmp_path, config=kafka.config, port=kafka.port)
    topics = CompactedTopics()
    turns: list[ServerProcess] = [kafka, ours, kafka]
    for number, server in enumerate(turns):
        server.start()
        try:
            if number == 0:
                topics.create(server.bootstrap)
            else:
                topics.check(server.bootstrap, at_most=2 * KEYS + 1300)
            topics.write(server.bootstrap, with_transactions=server is kafka)
            wait_until_clean(kafka.log_dirs[0])
            topics.check(server.bootstrap, at_most=2 * KEYS + 1300)
        finally:
            status = server.stop()
        assert status in (0, 143, -15), server.log()[-4000:]
        assert "uncleanable" not in server.log()
        folders = [kafka.log_dirs[0] / f"{codec}-0" for codec in CODECS]
        if server is ours:  # one dump for all topics, because each dump starts a Java process
            dump(kafka_43, [path for folder in folders for path in sorted(folder.glob("*.log"))], "--deep-iteration")
            indexes = [path for folder in folders for path in sorted(folder.glob("*.index"))]
            dump(kafka_43, indexes, "--verify-index-only")
            dump(kafka_43, [path for folder in folders for path in sorted(folder.glob("*.timeindex"))])
