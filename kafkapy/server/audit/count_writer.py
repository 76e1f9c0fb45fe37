"""Writes the counts of the audit, and the offsets up to which records are counted, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.client.admin import Admin
from kafkapy.client.consumer import Consumer
from kafkapy.client.coordinator import GroupMetadata
from kafkapy.client.producer import Producer
from kafkapy.client.reliable.audit import AUDIT_TOPIC, Count, pack_count
from kafkapy.client.reliable.chain_topics import ensure_topic
from kafkapy.client.reliable.relay import admin_keys, consumer_keys, producer_keys, transactional_producer
from kafkapy.types import TopicPartition

# The positions are committed offsets of this group, which has no members.
AUDIT_GROUP = "__kafkapy_audit"
# The longest time to wait for the brokers in one step.
_CLIENT_TIMEOUT_MS = 10_000


class CountWriter:
    """A client of the cluster, which writes the counts of the audit. Only the audit's thread may use it.

    Connects when it is first used. Every method may block for some ten seconds, and may raise KafkapyError.

    The position of a partition is the offset of the first record that is not counted yet. A broker uses the same
    transactional id after each start. If it was killed, its next process therefore ends the transaction that was left
    open, and the stored counts and positions are always those of a committed transaction. After an error, the caller
    calls `close`, discards the counts that are not written yet, and reads the stored positions with the method
    `positions` to begin again.
    """

    def __init__(self, properties: Mapping[str, Any], node_id: int) -> None:
        name = f"kafkapy-audit-broker-{node_id}"
        timeouts = {"default.api.timeout.ms": _CLIENT_TIMEOUT_MS, "request.timeout.ms": _CLIENT_TIMEOUT_MS // 2}
        self._properties = {**timeouts, **properties, "client.id": name}
        self._transactional_id = name
        self._producer: Producer | None = None

    @property
    def is_open(self) -> bool:
        return self._producer is not None

    def open(self) -> None:
        """Creates the topic of the counts if it does not exist, and ends a transaction that this broker has left open
        before.
        """
        if self._producer is not None:
            return
        with Admin(admin_keys(self._properties)) as admin:
            ensure_topic(admin, AUDIT_TOPIC, 1, {})
        timeouts = {"max.block.ms": _CLIENT_TIMEOUT_MS, "delivery.timeout.ms": _CLIENT_TIMEOUT_MS}
        properties = {**timeouts, "linger.ms": 5, **producer_keys(self._properties)}
        self._producer = transactional_producer(self._transactional_id, properties)

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Returns, for each partition, the offset of the first record that is not counted yet.

        The offset is None if no position was ever stored for the partition.
        """
        with Consumer(
            {
                **consumer_keys(self._properties),
                "group.id": AUDIT_GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "allow.auto.create.topics": False,
            }
        ) as consumer:
            found = consumer.committed(partitions)
        return {partition: None if each is None else each.offset for partition, each in found.items()}

    def write(self, counts: Iterable[Count], positions: Mapping[TopicPartition, int]) -> None:
        """Writes the counts and the positions in one transaction."""
        producer = self._producer
        assert producer is not None, "the writer is not open"
        producer.begin_transaction()
        for count in counts:
            producer.send(AUDIT_TOPIC, pack_count(count), count.topic.encode())
        producer.send_offsets_to_transaction(positions, GroupMetadata(AUDIT_GROUP))
        producer.commit_transaction()

    def close(self) -> None:
        """Closes the connections. A transaction that is still open is ended by the next call of `open`."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(0)
