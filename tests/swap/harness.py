"""The expected content of a cluster whose directory passes from one broker to another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from tests.clients.confluent_client import ConfluentClient, received_record
from tests.clients.records import CODECS, SentRecord, assert_same, make_records
from tests.swap.committed_offsets import committed_offsets
from tests.swap.transactions import OpenTransactions

PARTITIONS = 2
RECORDS = 60
TIMEOUT = 60


class SwappedHarness:
    """Writes through the broker that runs now, and stores what the following brokers must serve."""

    def __init__(self) -> None:
        self.records: dict[str, list[SentRecord]] = {}
        self.partitions: dict[str, int] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.committed: dict[str, dict[tuple[str, int], int]] = {}
        self.deleted: list[str] = []
        self.epochs: dict[str, list[tuple[int, int]]] = {}
        self.transactions = OpenTransactions()
        self._client = ConfluentClient(
            settings={"fetch.wait.max.ms": 10}
        )  # a closing consumer waits for its last fetch
        self._round = 0

    # -- writing

    def write(self, bootstrap: str, *, with_consumer_protocol: bool = False) -> None:
        """Creates a topic for each codec, appends to the existing topics, and changes configuration, topics, offsets
        and transactions."""
        self._round += 1
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for codec in CODECS:
            self._create(admin, f"{codec}.{self._round}", PARTITIONS, {"compression.type": "producer"})
        small = {"segment.bytes": "1048576", "segment.ms": "3600000", "max.message.bytes": "200000"}
        self._create(admin, f"configured.{self._round}", 1, small)
        self._create(admin, f"doomed.{self._round}", 3, {})
        for topic in [name for name in self.records if not name.startswith("doomed")]:
            codec = topic.partition(".")[0]
            self._produce(bootstrap, topic, codec if codec in CODECS else "none")
        self._alter(admin, f"configured.{self._round}")
        self._grow(admin, bootstrap, f"none.{self._round}")
        self._delete(admin, f"doomed.{self._round}")
        self._commit(bootstrap, f"group.{self._round}", {})
        self.transactions.write(bootstrap, self._round, lambda topic: new_topic(admin, topic, 1, {}))
        if with_consumer_protocol:
            self._commit(bootstrap, f"group848.{self._round}", {"group.protocol": "consumer"})

    def _create(self, admin: AdminClient, topic: str, partitions: int, configs: dict[str, str]) -> None:
        new_topic(admin, topic, partitions, configs)
        self.records[topic] = []
        self.partitions[topic] = partitions
        self.configs[topic] = dict(configs)

    def _produce(self, bootstrap: str, topic: str, codec: str) -> None:
        more = make_records(RECORDS, self.partitions[topic], seed=len(self.records[topic]))
        self._client.produce(bootstrap, topic, codec, more)
        self.records[topic] += more

    def _alter(self, admin: AdminClient, topic: str) -> None:
        entry = ConfigEntry("retention.ms", "86400000000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(TIMEOUT)
        self.configs[topic]["retention.ms"] = "86400000000"

    def _grow(self, admin: AdminClient, bootstrap: str, topic: str) -> None:
        admin.create_partitions([NewPartitions(topic, PARTITIONS + 1)])[topic].result(TIMEOUT)
        self.partitions[topic] = PARTITIONS + 1
        self._produce(bootstrap, topic, "none")

    def _delete(self, admin: AdminClient, topic: str) -> None:
        admin.delete_topics([topic])[topic].result(TIMEOUT)
        del self.records[topic], self.partitions[topic], self.configs[topic]
        self.deleted.append(topic)

    def _commit(self, bootstrap: str, group: str, properties: dict[str, str]) -> None:
        """Commits offsets of two topics as a member of the group."""
        topics = [f"gzip.{self._round}", f"zstd.{self._round}"]
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **properties,
            }
        )
        consumer.subscribe(topics)
        try:
            assert consumer.consume(1, TIMEOUT)
            offsets = [TopicPartition(topic, 1, 10 * self._round) for topic in topics]
            assert all(entry.error is None for entry in consumer.commit(offsets=offsets, asynchronous=False))
        finally:
            consumer.close()
        self.committed[group] = {(topic, 1): 10 * self._round for topic in topics}

    # -- checking

    def check(self, bootstrap: str) -> None:
        """Checks that the broker serves everything that was written, and nothing else."""
        admin = AdminClient({"bootstrap.servers": bootstrap})
        self._wait_for_leaders(admin)
        for topic in self.records:
            self._check_config(admin, topic)
        found_records = self._read_everything(bootstrap)
        for topic, sent in self.records.items():
            assert_same(sent, found_records[topic])
        for group, offsets in self.committed.items():
            assert committed_offsets(admin, group) == offsets, group

        self.transactions.check(bootstrap)

    def _wait_for_leaders(self, admin: AdminClient) -> None:
        """Waits until the broker names exactly the expected topics and leads all partitions: just after its start it
        may respond with metadata from before it was unfenced."""
        names = {*self.records, *self.transactions.committed}
        wanted = {(topic, number) for topic, count in self.partitions.items() for number in range(count)}
        deadline = time.monotonic() + TIMEOUT
        while True:
            topics = admin.list_topics(timeout=TIMEOUT).topics
            found = {name for name in topics if not name.startswith("__")}
            led = {
                (topic, number)
                for topic in found & self.records.keys()
                for number, partition in topics[topic].partitions.items()
                if partition.leader == 1 and partition.isrs == [1]
            }
            if (found, led) == (names, wanted):
                return
            assert time.monotonic() < deadline, (found ^ names, led ^ wanted)
            time.sleep(0.1)

    def _read_everything(self, bootstrap: str) -> dict[str, list[SentRecord]]:
        """Returns the records by topic. Uses one consumer for all topics, because each consumer takes half a second to
        start and end."""
        settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
        consumer = Consumer({**settings, "fetch.wait.max.ms": 10})
        places = [(topic, number) for topic, count in self.partitions.items() for number in range(count)]
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in places])
        found: dict[str, list[SentRecord]] = {topic: [] for topic in self.records}
        wanted = sum(map(len, self.records.values()))
        deadline = time.monotonic() + TIMEOUT
        try:
            while sum(map(len, found.values())) < wanted:
                assert time.monotonic() < deadline, {topic: len(records) for topic, records in found.items()}
                for message in consumer.consume(500, 0.1):
                    if message.error():
                        raise KafkaException(message.error())
                    found[message.topic()].append(received_record(message))
        finally:
            consumer.close()
        return found

    def _check_config(self, admin: AdminClient, topic: str) -> None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        entries: dict[str, Any] = admin.describe_configs([resource])[resource].result(TIMEOUT)
        for name, value in self.configs[topic].items():
            assert entries[name].value == value, (topic, name)

    def check_directories(self, log_dirs: list[Path]) -> None:
        """Checks that the directories have no strays, and that each partition's epoch history only grows."""
        for directory in self._partition_directories(log_dirs):
            assert not directory.name.endswith("-stray"), directory
            checkpoint = directory / "leader-epoch-checkpoint"
            epochs = read_epochs(checkpoint) if checkpoint.exists() else []
            before = self.epochs.get(directory.name, [])
            assert goes_on(before, epochs), (directory, before, epochs)
            self.epochs[directory.name] = epochs

    def _partition_directories(self, log_dirs: list[Path]) -> Iterator[Path]:
        for log_dir in log_dirs:
            for directory in sorted(log_dir.iterdir()):
                # A deletion may still be in progress. The internal topics are checked with Kafka's tool.
                if directory.is_dir() and not directory.name.endswith("-delete") and "." in directory.name:
                    yield directory


def new_topic(admin: AdminClient, topic: str, partitions: int, configs: dict[str, str]) -> None:
    admin.create_topics([NewTopic(topic, partitions, 1, config=configs)])[topic].result(TIMEOUT)


def goes_on(before: list[tuple[int, int]], epochs: list[tuple[int, int]]) -> bool:
    """Returns whether the leader epochs `epochs` of a log continue those that it had before, as (epoch, start offset).

    The last of the former epochs may be replaced by a newer one at the same offset, because it has no records.
    """
    if before and len(epochs) >= len(before) and epochs[len(before) - 1][1] == before[-1][1]:
        before = [*before[:-1], epochs[len(before) - 1]]
    return epochs[: len(before)] == before


def read_epochs(checkpoint: Path) -> list[tuple[int, int]]:
    """Returns the (epoch, start offset) pairs of a `leader-epoch-checkpoint`."""
    version, count, *rows = checkpoint.read_text().splitlines()
    assert (version, int(count)) == ("0", len(rows))
    return [(int(epoch), int(offset)) for epoch, offset in (row.split() for row in rows)]
