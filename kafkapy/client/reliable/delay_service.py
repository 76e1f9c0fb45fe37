"""The delay service: keeps records until they are due, and sends each exactly once to its topic.

A record of the delay topic moves to the topic of pending records (compacted, with equally many partitions), in the
transaction that commits its offset. When it is due, one transaction sends it to its target and deletes it from the
pending ones. Every transaction commits the offsets of all partitions it concerns, so that a member that has lost a
partition is fenced. A member that gets a partition reads its pending records again.

A transaction reads few new records and sends few due ones, so that it is short: a record that becomes due while a
transaction is open has to wait until the transaction ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafkapy.client.admin import Admin
from kafkapy.client.consumer import ConsumerRecords
from kafkapy.client.reliable.chain_headers import ChainState, error_text, headers_after_failure
from kafkapy.client.reliable.chain_topics import RETAINED_FOREVER, ensure_topic, partition_count
from kafkapy.client.reliable.delayed_records import (
    DELAY_TOPIC,
    Cancellation,
    DelayedRecord,
    InvalidDelay,
    pack,
    parse,
    unpack,
)
from kafkapy.client.reliable.pending_records import PendingRecords
from kafkapy.client.reliable.pending_restore import restore
from kafkapy.client.reliable.records import Output, SourceRecord
from kafkapy.client.reliable.refusals import Refusals
from kafkapy.client.reliable.relay import IDLE_WAIT_S, Batch, Relay, admin_keys, unfinished
from kafkapy.client.reliable.relay_service import PausedPartitions, RelayService
from kafkapy.client.reliable.topic_scan import scan
from kafkapy.types import Clock, SystemClock, TopicPartition

GROUP = "kafkapy-delay"
DEFAULT_PARTITIONS = 3
MOST_PENDING = 2_000_000
MOST_DELAY_MS = 366 * 24 * 3600 * 1000
# The due records, and the new records, of one transaction: about ten milliseconds of work each.
MOST_DUE = 1000
MOST_READ = 500
_FULL_WAIT_MS = 200


class DelayService(RelayService):
    """A member of the group of delay services, which share the partitions of the delay topic.

    It stores the records of the delay topic until they are due, and then sends each exactly once to its target topic.
    `run` is called by one thread, `stop` by any.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        *,
        topic: str = DELAY_TOPIC,
        group: str = GROUP,
        partitions: int = DEFAULT_PARTITIONS,
        most_pending: int = MOST_PENDING,
        most_delay_ms: int = MOST_DELAY_MS,
        instance: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Connects to the brokers and creates the missing topics.

        properties: the configuration of the clients.
        topic: the delay topic.
        partitions: the number of partitions of the delay topic if it is created.
        most_pending: the largest number of pending records of this process. While it has so many, it reads no further
            records.
        most_delay_ms: a record with a longer delay becomes a dead letter.
        instance: a name for this process that no other process of the group has at the same time; None: a random name.
        """
        self._properties = dict(properties)
        self._topic = topic
        self._group = group
        self._most_pending = most_pending
        self._most_delay_ms = most_delay_ms
        self._clock = clock or SystemClock()
        with Admin(admin_keys(properties)) as admin:
            count = partition_count(admin, topic) or ensure_topic(admin, topic, partitions, {})
            ensure_topic(admin, self._state_topic, count, {"cleanup.policy": "compact", "segment.bytes": str(64 << 20)})
            ensure_topic(admin, self._dead_topic, count, {"retention.ms": RETAINED_FOREVER})
        self._pending = PendingRecords(self._clock.wall_ms())
        self._unrestored: set[int] = set()
        self._restored: set[int] = set()
        self._known_targets: set[str] = set()
        self._paused = PausedPartitions()
        self._refusals = Refusals()
        self._delivered_from: set[TopicPartition] = set()  # the partitions of due records in the present transaction
        settings = {} if "max.poll.records" in properties else {"max.poll.records": MOST_READ}
        self.relay = Relay(properties, group, self, instance=instance, consumer_settings=settings)

    @property
    def _state_topic(self) -> str:
        return f"{self._topic}.pending"

    @property
    def _dead_topic(self) -> str:
        return f"{self._topic}.dlt"

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of records since the start.

        accepted: records that wait. delivered: records sent to their targets. cancelled, replaced: pending records that
        were removed. unknown_cancellations: cancellations without a pending record. dead: dead letters. full: pauses
        because of `most_pending`. restored: pending records read at assignments.
        """
        return self.relay.counts

    @property
    def pending_count(self) -> int:
        """The number of pending records of this process."""
        return self._pending.count

    def close(self) -> None:
        """Leaves the group, and closes the connections and the temporary file that stores the pending records."""
        super().close()
        self._pending.close()

    # Called by the relay

    def topics(self) -> Collection[str]:
        return [self._topic]

    def assigned(self, relay: Relay, partitions: Collection[TopicPartition]) -> None:
        self._unrestored |= {each.partition for each in partitions} - self._restored

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._paused.forget(partitions)
        numbers = {each.partition for each in partitions}
        self._unrestored -= numbers
        self._pending.roll_back()  # of a transaction that an error has ended
        self._pending.drop(self._restored & numbers)
        self._restored -= numbers

    def wait_s(self, now_ms: int) -> float:
        times = self._paused.resume_due(self.relay.consumer, now_ms), self._pending.next_ms()
        return min([IDLE_WAIT_S, *(max(each - now_ms, 0) / 1000 for each in times if each is not None)])

    def step(self, relay: Relay, records: ConsumerRecords, batch: Batch) -> None:
        self._refusals.begin()
        self._delivered_from.clear()
        for number in sorted(self._unrestored):
            self._restore(relay, number)
        self._deliver(relay, batch)
        for partition, ordered in records.by_partition().items():
            for record in ordered:
                if relay.is_single and batch.sent:
                    break
                if self._pending.count >= self._most_pending:
                    self._paused.pause(relay.consumer, partition, self._clock.wall_ms() + _FULL_WAIT_MS)
                    batch.counts["full"] += 1
                    break
                self._read(relay, record, batch)
                batch.passed(partition, record.offset)
        for partition, offset in unfinished(records, batch.offsets).items():
            relay.consumer.seek(partition, offset)
        self._commit_positions(relay, batch)

    def committed(self) -> None:
        self._refusals.committed()
        self._pending.commit()

    def aborted(self, error: Exception) -> None:
        """Undoes the changes of the transaction in memory.

        If the transaction may have been committed, forgets all pending records, so that they are read again.
        """
        self._known_targets.clear()
        self._pending.roll_back()
        if self.relay.may_be_committed:
            self._pending.drop(self._restored)
            self._unrestored |= self._restored
            self._restored.clear()
        self._refusals.aborted(error)

    # Internal

    def _restore(self, relay: Relay, number: int) -> None:
        partition = TopicPartition(self._state_topic, number)
        try:
            count = restore(self._pending, number, scan(self._properties, {partition: None}))
        except BaseException:
            self._pending.roll_back()
            self._pending.drop({number})
            raise
        self._unrestored.discard(number)
        self._restored.add(number)
        relay.counts["restored"] += count

    def _read(self, relay: Relay, record: SourceRecord, batch: Batch) -> None:
        place = (record.topic, record.partition, record.offset)
        if relay.is_single:
            self._refusals.tries(place)
        refusal = self._refusals.error_of(place)
        try:
            if refusal is not None:
                raise refusal
            found = parse(record, self._most_delay_ms)
            if isinstance(found, DelayedRecord):
                self._check_target(relay, found.target)
        except Exception as error:
            if not isinstance(error, InvalidDelay) and error is not refusal:
                raise
            self._bury(record, error, batch)
            return
        if isinstance(found, Cancellation):
            self._cancel(record.partition, found, batch)
            return
        if found.is_replaceable and self._pending.remove_key(record.partition, found.state_key):
            batch.counts["replaced"] += 1
            self._delete(record.partition, found.state_key, batch)
        content = pack(found)
        batch.send(Output(self._state_topic, content, found.state_key, (), record.partition))
        self._pending.add(record.partition, found.due_ms, content, found.state_key if found.is_replaceable else None)
        batch.counts["accepted"] += 1

    def _cancel(self, partition: int, found: Cancellation, batch: Batch) -> None:
        if self._pending.remove_key(partition, found.state_key):
            self._delete(partition, found.state_key, batch)
            batch.counts["cancelled"] += 1
        else:
            batch.counts["unknown_cancellations"] += 1

    def _delete(self, partition: int, state_key: bytes, batch: Batch) -> None:
        batch.send(Output(self._state_topic, None, state_key, (), partition))

    def _check_target(self, relay: Relay, target: str) -> None:
        if target not in self._known_targets:
            if target.startswith(f"{self._topic}.") or not relay.topic_exists(target):
                raise InvalidDelay(f"The topic {target} does not exist, or belongs to the delay service")
            self._known_targets.add(target)

    def _deliver(self, relay: Relay, batch: Batch) -> None:
        """Adds due records to the transaction `batch`, at most MOST_DUE.

        After the brokers have refused a record (`relay.is_single`), adds only one, so that the refused record can be
        found.
        """
        for entry in self._pending.take_due(self._clock.wall_ms(), 1 if relay.is_single else MOST_DUE):
            partition = self._pending.partition(entry)
            found = unpack(self._pending.content(entry))
            if relay.is_single:
                self._refusals.tries((partition, found.state_key, found.due_ms))
            self._send_due(relay, partition, found, batch)
            if found.is_replaceable:
                self._pending.forget_key(partition, found.state_key)

    def _send_due(self, relay: Relay, partition: int, found: DelayedRecord, batch: Batch) -> None:
        error = self._refusals.error_of((partition, found.state_key, found.due_ms))
        if error is None:
            try:
                self._check_target(relay, found.target)
            except InvalidDelay as invalid:
                error = invalid
        if error is None:
            batch.send(found.output())
            batch.counts["delivered"] += 1
        else:
            state = ChainState(found.target, partition, 0, found.due_ms, attempts=1)
            headers = headers_after_failure(found.headers, state, error_text(error), self._group, is_dead=True)
            batch.send(Output(self._dead_topic, found.value, found.key, headers, partition))
            batch.counts["dead"] += 1
        self._delete(partition, found.state_key, batch)
        self._delivered_from.add(TopicPartition(self._topic, partition))

    def _commit_positions(self, relay: Relay, batch: Batch) -> None:
        """Adds the position of each partition with due records to the transaction `batch`.

        If new records of the partition were read, its position is in `batch` already. The coordinator refuses offsets
        of a member that has left the group's generation. The position therefore makes the transaction fail if this
        process has lost the partition.
        """
        for partition in self._delivered_from - batch.offsets.keys():
            batch.offsets[partition] = relay.consumer.position(partition)

    def _bury(self, record: SourceRecord, error: Exception, batch: Batch) -> None:
        state = ChainState(record.topic, record.partition, record.offset, record.timestamp, attempts=1)
        headers = headers_after_failure(record.headers, state, error_text(error), self._group, is_dead=True)
        batch.send(Output(self._dead_topic, record.value, record.key, headers, record.partition))
        batch.counts["dead"] += 1
