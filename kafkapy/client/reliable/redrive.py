"""Moves dead letters back to the topics that they came from, each at most once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.client.admin import Admin
from kafkapy.client.coordinator import GroupMetadata, OffsetAndMetadata
from kafkapy.client.producer import Producer
from kafkapy.client.reliable.chain_headers import Origin, origin_of, without_chain
from kafkapy.client.reliable.chain_topics import partition_count
from kafkapy.client.reliable.conditions import Condition, RecordView, all_hold
from kafkapy.client.reliable.moved_offsets import MovedOffsets
from kafkapy.client.reliable.relay import MOST_POLLED, RELAY_TIMEOUT_MS, admin_keys, producer_keys
from kafkapy.client.reliable.topic_scan import all_partitions, scan
from kafkapy.errors import ConfigError
from kafkapy.types import TopicPartition


class Redrive:
    """One pass over a topic of dead letters. Used by one thread.

    The offsets of the group `kafkapy-redrive-TOPIC` say which records were moved; they are committed in the transaction
    that moves the records, so that a second pass, or a pass after a crash, moves none of them again. Conditions choose
    records; the others stay for a later pass.

    target: the topic to move to; None for the topic that the record's headers name (kafkapy's, Spring's or Connect's).
    most: the greatest number of records to move; None for all.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        topic: str,
        *,
        conditions: Sequence[Condition] = (),
        target: str | None = None,
        most: int | None = None,
        on_record: Callable[[ConsumerRecord, str], object] | None = None,
    ) -> None:
        """Prepares a pass over the dead letters in `topic`.

        `on_record(record, target)` is called for each record that is moved, or that a dry run counts.
        """
        self._properties = dict(properties)
        self._topic = topic
        self._conditions = conditions
        self._target = target
        self._most = most
        self._on_record = on_record
        self._moved: dict[TopicPartition, MovedOffsets] = {}
        self._target_counts: dict[str, int | None] = {}
        self.counts: Counter[str] = Counter()

    @property
    def group(self) -> str:
        """The consumer group whose committed offsets and metadata record which dead letters were moved."""
        return f"kafkapy-redrive-{self._topic}"

    def run(self, *, is_dry: bool = False) -> Mapping[str, int]:
        """Moves the records, or with `is_dry` only counts them; returns the counts. Blocks.

        moved: records sent to their topics. other: records that the conditions leave out. moved_before: records of
        earlier passes that were read again. no_origin: records without a topic to go to. no_topic: records whose topic
        does not exist. full: records left for a later pass because the committed metadata is full. chosen: records to
        move that were found, the same number as `moved` after a pass without an error.

        Raises ConfigError if the topic does not exist or is its own target.
        """
        if self._target == self._topic:
            raise ConfigError(f"{self._topic} cannot be redriven into itself")
        partitions = all_partitions(self._properties, self._topic)
        if not partitions:
            raise ConfigError(f"The topic {self._topic} does not exist")
        with Admin(admin_keys(self._properties)) as admin:
            self._read_moved(admin, partitions)
            chosen = self._chosen(admin)
            if is_dry:
                for _ in chosen:
                    self.counts["moved"] += 1
            else:
                self._move(chosen)
        return self.counts

    def _read_moved(self, admin: Admin, partitions: Sequence[TopicPartition]) -> None:
        committed = admin.list_group_offsets([self.group]).values.get(self.group, {})
        for each in partitions:
            found = committed.get(each)
            first, text = (0, "") if found is None else (max(found.offset, 0), found.metadata or "")
            self._moved[each] = MovedOffsets(first, text)

    def _chosen(self, admin: Admin) -> Iterator[tuple[ConsumerRecord, Origin]]:
        """Yields the records to move, each with the topic and partition to move to, and adds their offsets to the moved
        ones.

        Ends after as many records as the constructor's `most`. Counts the records that are not moved by the reason:
        "moved_before", "other" (the conditions leave them out), "no_origin", "no_topic" or "full".
        """
        ends: dict[TopicPartition, int] = {}
        for record in scan(self._properties, {each: moved.first for each, moved in self._moved.items()}):
            partition = TopicPartition(record.topic, record.partition)
            moved = self._moved[partition]
            previous_end = ends.get(partition)
            ends[partition] = record.offset + 1
            if record.offset in moved:
                self.counts["moved_before"] += 1
                continue
            if not all_hold(self._conditions, RecordView(record)):
                self.counts["other"] += 1
                continue
            origin = self._origin(admin, record)
            if origin is None:
                continue
            if self._most is not None and self.counts["chosen"] >= self._most:
                return
            if not moved.add(record.offset, previous_end):
                self.counts["full"] += 1
                continue
            self.counts["chosen"] += 1
            if self._on_record is not None:
                self._on_record(record, origin.topic)
            yield record, origin

    def _origin(self, admin: Admin, record: ConsumerRecord) -> Origin | None:
        """Returns the topic and, if it is known, the partition to which a record goes.

        Returns None, and counts the reason, if the record's headers name no topic, if they name the topic of the dead
        letters itself, or if the topic does not exist.
        """
        found = Origin(self._target) if self._target is not None else origin_of(record.headers)
        if found is None or found.topic == self._topic:
            self.counts["no_origin"] += 1
            return None
        if found.topic not in self._target_counts:
            self._target_counts[found.topic] = partition_count(admin, found.topic)
        count = self._target_counts[found.topic]
        if count is None:
            self.counts["no_topic"] += 1
            return None
        # A record goes back to its original partition; if that is unknown or does not exist, its key decides.
        is_known = found.partition is not None and found.partition < count
        return found if is_known else Origin(found.topic)

    def _move(self, chosen: Iterator[tuple[ConsumerRecord, Origin]]) -> None:
        producer = Producer(
            {
                "transaction.timeout.ms": RELAY_TIMEOUT_MS,
                **producer_keys(self._properties),
                "transactional.id": self.group,
                "enable.idempotence": True,
                "acks": "all",
            }
        )
        try:
            producer.init_transactions()
            is_done = False
            while not is_done:
                sent = 0
                for record, origin in chosen:
                    if sent == 0:
                        producer.begin_transaction()
                    headers = without_chain(record.headers)
                    producer.send(origin.topic, record.value, record.key, partition=origin.partition, headers=headers)
                    sent += 1
                    if sent == MOST_POLLED:
                        break
                else:
                    is_done = True
                if sent:
                    offsets = {
                        each: OffsetAndMetadata(moved.first, metadata=moved.text())
                        for each, moved in self._moved.items()
                    }
                    producer.send_offsets_to_transaction(offsets, GroupMetadata(self.group))
                    producer.commit_transaction()
                    self.counts["moved"] += sent
        finally:
            producer.close()
