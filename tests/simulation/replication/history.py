"""The committed and acknowledged records of a simulated cluster, and the invariants that hold after every event.

A record is committed when it is below the high watermark of a broker that believes to lead its partition. From then on
every leader has it, at the same offset, unless the schedule allows losses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkapy._core.bytes.record_batch import iterate_batches
from kafkapy.replica.partition import Partition
from kafkapy.storage.control_record import end_transaction_marker
from kafkapy.storage.log import Log
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from tests.simulation.replication.broker import Broker
    from tests.simulation.replication.world import World

# The value of a record, or a description of a marker.
Entry = bytes
READ_BYTES = 1 << 20


class InvariantBroken(AssertionError):
    """A schedule that broke an invariant."""


def records_in(data: bytes) -> Iterator[tuple[int, Entry, int]]:
    """Yields the offset, the entry and the producer id of each record."""
    for batch in iterate_batches(data):
        if batch.is_control:
            marker = end_transaction_marker(batch)
            assert marker is not None
            kind = b"commit" if marker.is_commit else b"abort"
            yield batch.base_offset, b"%s of %d" % (kind, batch.producer_id), batch.producer_id
        else:
            for record in batch:
                yield record.offset, bytes(record.value or b""), batch.producer_id


def read_log(log: Log, offset: int, end: int) -> Iterator[tuple[int, Entry]]:
    """Yields the entries of a log from `offset` to before `end`."""
    while offset < end:
        found = log.read(offset, READ_BYTES, max_offset=end, min_one_message=True).records
        data = found if isinstance(found, bytes) else found.read()
        before = offset
        for at, entry, _ in records_in(data):
            if offset <= at < end:
                yield at, entry
                offset = at + 1
        if offset == before:
            raise InvariantBroken(f"{log} has no record at {offset}, below {end}")


class Seen:
    """The state of a replica after the last event of its broker."""

    __slots__ = ("high_watermark", "is_leader", "leader_epoch", "truncations", "verified")

    def __init__(self) -> None:
        self.high_watermark = -1
        self.is_leader = False
        self.leader_epoch = -1
        self.truncations = -1
        self.verified = 0


class History:
    """The committed entries of each partition by offset, and the acknowledged ones.

    `may_lose` switches off the checks of contents, in schedules that elect unclean leaders.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.may_lose = False
        self.is_exactly_once = True
        self.committed: dict[TopicPartition, list[Entry]] = {}
        self.acknowledged: dict[TopicPartition, dict[int, Entry]] = {}
        self.once: set[bytes] = set()  # the names of idempotent producers
        self.outcomes: dict[bytes, bool] = {}  # of transactions, by the names of their producers: commit or abort
        self.acknowledgements = 0
        self.deleted: dict[TopicPartition, int] = {}
        self._numbers: dict[tuple[TopicPartition, bytes], int] = {}
        self._seen: dict[tuple[int, TopicPartition], Seen] = {}

    # -- events

    def forget(self, broker: Broker) -> None:
        """Forgets the replicas of a process that has ended."""
        for key in [key for key in self._seen if key[0] == broker.broker_id]:
            del self._seen[key]

    def observe(self, broker: Broker) -> None:
        """Checks the replicas of a broker after an event."""
        if not broker.is_accepting:
            return
        for topic_partition, partition in broker.manager.partitions.items():
            key = broker.broker_id, topic_partition
            seen = self._seen.get(key)
            if seen is None:
                seen = self._seen[key] = Seen()
            if (
                partition.log.high_watermark != seen.high_watermark
                or partition.log.truncations != seen.truncations
                or partition.is_leader != seen.is_leader
                or partition.leader_epoch != seen.leader_epoch
            ):
                self._check(broker, partition, seen)

    def _check(self, broker: Broker, partition: Partition, seen: Seen) -> None:
        log, topic_partition = partition.log, partition.topic_partition
        high_watermark = log.high_watermark
        if log.truncations != seen.truncations:
            seen.truncations, seen.verified = log.truncations, 0
        is_same_leader = seen.is_leader and partition.is_leader and seen.leader_epoch == partition.leader_epoch
        if is_same_leader and high_watermark < seen.high_watermark:
            raise InvariantBroken(
                f"the high watermark of leader {broker.broker_id} of {topic_partition} went from "
                f"{seen.high_watermark} to {high_watermark}"
            )
        if partition.is_leader and not self.may_lose:
            if not is_same_leader:
                self._check_new_leader(broker, partition)
            self._commit(broker, partition, seen)
        seen.high_watermark = high_watermark
        seen.is_leader = partition.is_leader
        seen.leader_epoch = partition.leader_epoch

    def _check_new_leader(self, broker: Broker, partition: Partition) -> None:
        image = self.world.controller.image.topics.partition(*partition.topic_partition)
        end = len(self.committed.get(partition.topic_partition, ()))
        is_current = image is not None and image.leader_epoch == partition.leader_epoch
        if is_current and partition.log.log_end_offset < end:
            raise InvariantBroken(
                f"broker {broker.broker_id} leads {partition.topic_partition} in epoch {partition.leader_epoch} with a "
                f"log up to {partition.log.log_end_offset}, but everything up to {end} is committed"
            )

    def _commit(self, broker: Broker, partition: Partition, seen: Seen) -> None:
        """Compares what is below a leader's high watermark with what is committed, and adds to it."""
        log = partition.log
        committed = self.committed.setdefault(partition.topic_partition, [])
        begin = max(seen.verified, log.log_start_offset)
        for offset, entry in read_log(log, begin, log.high_watermark):
            if offset < len(committed):
                if committed[offset] != entry:
                    raise InvariantBroken(
                        f"{partition.topic_partition} has {committed[offset]!r} at {offset}, but broker "
                        f"{broker.broker_id} has {entry!r} in epoch {partition.leader_epoch}"
                    )
            elif offset > len(committed):
                raise InvariantBroken(f"broker {broker.broker_id} commits {offset} after {len(committed)}")
            else:
                committed.append(entry)
                self._added(partition.topic_partition, offset, entry)
        seen.verified = max(seen.verified, log.high_watermark)

    def _added(self, topic_partition: TopicPartition, offset: int, entry: Entry) -> None:
        expected = self.acknowledged.get(topic_partition, {}).get(offset, entry)
        if expected != entry:
            raise InvariantBroken(
                f"{topic_partition} commits {entry!r} at {offset}, where {expected!r} was acknowledged"
            )
        name, _, number = entry.partition(b":")
        if name in self.once and self.is_exactly_once:
            key = topic_partition, name
            if int(number) != self._numbers.get(key, -1) + 1:
                raise InvariantBroken(f"{topic_partition} commits {entry!r} after number {self._numbers.get(key, -1)}")
            self._numbers[key] = int(number)

    # -- clients

    def deleted_before(self, topic_partition: TopicPartition) -> int:
        """Returns the offset before which records may have been deleted."""
        return self.deleted.get(topic_partition, 0)

    def acknowledge(self, topic_partition: TopicPartition, base_offset: int, entries: list[Entry]) -> None:
        """Stores the entries that were acknowledged to a producer with acks=all.

        Raises InvariantBroken if another entry was acknowledged or committed at one of their offsets.
        """
        self.acknowledgements += len(entries)
        if self.may_lose:
            return
        committed = self.committed.get(topic_partition, [])
        acknowledged = self.acknowledged.setdefault(topic_partition, {})
        for offset, entry in enumerate(entries, base_offset):
            if acknowledged.setdefault(offset, entry) != entry:
                raise InvariantBroken(f"{entry!r} and {acknowledged[offset]!r} were acknowledged at {offset}")
            if offset < len(committed) and committed[offset] != entry:
                raise InvariantBroken(
                    f"{entry!r} was acknowledged at {offset} of {topic_partition}, but {committed[offset]!r} committed"
                )

    def has_read(self, topic_partition: TopicPartition, offset: int, entry: Entry) -> None:
        """Checks that a record that a consumer got is committed. `observe` must have been called for the broker that
        sent it."""
        committed = self.committed.get(topic_partition, [])
        if not self.may_lose and (offset >= len(committed) or committed[offset] != entry):
            found = committed[offset] if offset < len(committed) else None
            raise InvariantBroken(f"a consumer got {entry!r} at {offset} of {topic_partition}; committed: {found!r}")

    def has_read_committed(self, topic_partition: TopicPartition, offset: int, entry: Entry) -> None:
        name = entry.partition(b":")[0]
        if not self.may_lose and self.outcomes.get(name, True) is False:
            raise InvariantBroken(f"read_committed shows {entry!r} at {offset} of {topic_partition}, which was aborted")

    # -- the end

    def check_replicas(self, topic_partition: TopicPartition, brokers: list[Broker]) -> None:
        """Compares complete replicas of a healed partition with each other and with what was acknowledged."""
        logs = [broker.manager.partitions[topic_partition].log for broker in brokers]
        start = max(log.log_start_offset for log in logs)
        contents = [list(read_log(log, start, log.log_end_offset)) for log in logs]
        for broker, content in zip(brokers, contents, strict=True):
            if content != contents[0]:
                raise InvariantBroken(
                    f"brokers {brokers[0].broker_id} and {broker.broker_id} differ in {topic_partition}: "
                    f"{set(content) ^ set(contents[0])}"
                )
        if self.may_lose:
            return
        committed = self.committed.get(topic_partition, [])
        for offset, entry in contents[0]:
            if committed[offset] != entry:
                raise InvariantBroken(f"{topic_partition} has {entry!r} at {offset}, not {committed[offset]!r}")
        for offset, entry in self.acknowledged.get(topic_partition, {}).items():
            if offset >= len(committed) or committed[offset] != entry:
                raise InvariantBroken(f"{entry!r}, acknowledged at {offset} of {topic_partition}, is lost")
