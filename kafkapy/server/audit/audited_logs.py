"""The logs of the audited partitions that this broker leads, as the audit's thread reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from kafkapy._core.broker_state.client_notes import ClientNames, ClientNotes
from kafkapy._core.bytes.segment_file import FileRange
from kafkapy.metadata.internal_topics import INTERNAL_TOPICS
from kafkapy.named_tuple import NamedTuple
from kafkapy.replica.partition import Partition
from kafkapy.storage.log import Log
from kafkapy.types import Clock, TopicPartition

# The audit reads a log in parts of this size, or of one batch if that is larger.
LOG_PART_BYTES = 8 << 20
# A broker that becomes the leader of a partition after another one begins to count it after this time. By then, the
# former leader has been notified or fenced, so that not both write counts of the same records.
LEADER_CHANGE_PAUSE_MS = 20_000
FIRST_LEADER_EPOCH = 0


class Leadership(NamedTuple):
    """A time during which this broker leads an audited partition.

    `serial` differs from that of every other leadership. `begin_offset` was the end of the log when this broker began
    to host the partition. Counting begins at this offset if the audit has never stored a position for the partition.
    """

    serial: int
    begin_offset: int
    counts_from_ms: int


class LogPart(NamedTuple):
    """A part of a log in which all transactions have ended, with its clients and its aborted transactions.

    `clients` has (first offset, number of the client) of each range of offsets that one client has written, because
    records do not name the client that produced them. `aborted` has (producer id, first offset, last offset) of each
    aborted transaction. If `records` is empty, there is nothing to count below `end_offset`.
    """

    records: FileRange | bytes
    start_offset: int
    end_offset: int
    clients: list[tuple[int, int]]
    aborted: list[tuple[int, int, int]]


class AuditedLogs:
    """The partitions led by this broker whose records are counted for the audit.

    Only the reactor's thread may use the object, with one exception. A LogPart identifies clients by numbers, and
    `names` maps these numbers to client ids. The audit's thread may look up the numbers of the log parts that it has
    received.
    """

    def __init__(self, patterns: Iterable[str], excluded: Collection[str], clock: Clock) -> None:
        """Creates the object without partitions. Audits the topics that match one of `patterns`, except for internal
        topics and those in `excluded`."""
        self.names = ClientNames()
        self._patterns = tuple(patterns)
        self._excluded = frozenset(excluded) | INTERNAL_TOPICS
        self._clock = clock
        self._partitions: dict[TopicPartition, Partition] = {}
        self._leaderships: dict[TopicPartition, Leadership] = {}
        self._begin_offsets: dict[TopicPartition, int] = {}  # of all audited partitions, also followed ones
        self._serial = 0

    def is_audited(self, topic: str) -> bool:
        return topic not in self._excluded and any(fnmatchcase(topic, pattern) for pattern in self._patterns)

    def on_leadership(self, led: Iterable[Partition], followed: Iterable[Partition]) -> None:
        """Begins to note the clients that produce to the partitions `led`, which this broker leads now.

        Stops noting the clients of the partitions `followed`, which this broker does not lead.
        """
        for partition in followed:
            if self._partitions.get(partition.topic_partition) is partition:
                del self._partitions[partition.topic_partition]
                del self._leaderships[partition.topic_partition]
            partition.client_notes = None
            if not partition.is_gated:  # it is no longer hosted
                self._begin_offsets.pop(partition.topic_partition, None)
            elif self.is_audited(partition.topic_partition.topic):
                self._begin_offsets.setdefault(partition.topic_partition, partition.log.log_end_offset)
        for partition in led:
            topic_partition = partition.topic_partition
            if self._partitions.get(topic_partition) is partition or not self.is_audited(topic_partition.topic):
                continue
            partition.client_notes = ClientNotes(self.names)
            self._serial += 1
            has_predecessor = len(partition.replicas) > 1 and partition.leader_epoch > FIRST_LEADER_EPOCH
            pause_ms = LEADER_CHANGE_PAUSE_MS if has_predecessor else 0
            self._partitions[topic_partition] = partition
            begin_offset = self._begin_offsets.setdefault(topic_partition, partition.log.log_end_offset)
            self._leaderships[topic_partition] = Leadership(
                self._serial, begin_offset, self._clock.monotonic_ms() + pause_ms
            )

    def leaderships(self) -> Mapping[TopicPartition, Leadership]:
        """Returns a copy of the present leaderships."""
        return dict(self._leaderships)

    def read(self, positions: Iterable[tuple[TopicPartition, int, int]], most: int) -> dict[TopicPartition, LogPart]:
        """Returns the next part of each log that has records to count, for at most `most` logs.

        `positions` are triples (partition, `Leadership.serial`, offset of the next record to count). A partition is
        left out if its present Leadership has another serial, or if this broker does not lead it. Raises StorageError
        or ApiError.
        """
        parts: dict[TopicPartition, LogPart] = {}
        for topic_partition, serial, offset in positions:
            leadership = self._leaderships.get(topic_partition)
            if leadership is None or leadership.serial != serial:
                continue
            partition = self._partitions[topic_partition]
            if partition.log.last_stable_offset > offset or partition.log.log_end_offset < offset:
                parts[topic_partition] = _read_part(partition.log, partition.client_notes, offset)
                if len(parts) == most:
                    break
        return parts

    def forget(self, positions: Mapping[TopicPartition, int]) -> None:
        """Forgets which clients have produced the records below an offset; `positions` maps partitions to offsets.

        Called when the counts of these records are written.
        """
        for topic_partition, offset in positions.items():
            partition = self._partitions.get(topic_partition)
            if partition is not None and partition.client_notes is not None:
                partition.client_notes.forget_below(offset)


def _read_part(log: Log, notes: ClientNotes | None, offset: int) -> LogPart:
    """Returns the part of the log from `offset` on, up to the last stable offset.

    The part begins at an earlier offset if the log has lost records in an unclean election, and at a later one if
    records were deleted before they were counted.
    """
    end_offset = log.last_stable_offset
    start_offset = max(min(offset, end_offset), log.log_start_offset)
    if start_offset >= end_offset:
        return LogPart(b"", start_offset, start_offset, [], [])
    records = log.read(start_offset, LOG_PART_BYTES, max_offset=end_offset).records
    aborted = [each[:3] for each in log.collect_aborted_transactions(start_offset, end_offset)]
    clients = [] if notes is None else notes.runs_between(start_offset, end_offset)
    return LogPart(records, start_offset, end_offset, clients, aborted)
