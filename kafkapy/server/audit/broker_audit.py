"""The thread that counts the records of audited topics, from the logs, after they were appended."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from functools import partial
from itertools import islice
from typing import Any, Protocol

from kafkapy.client.reliable.audit import ABORTED, APPENDED, BUCKET_MS, REPORT_MS, Count
from kafkapy.errors import ApiError, KafkapyError
from kafkapy.named_tuple import NamedTuple
from kafkapy.server.audit.audited_logs import AuditedLogs, Leadership, LogPart
from kafkapy.server.audit.log_counter import LogCounter
from kafkapy.types import Clock, TopicPartition

logger = logging.getLogger("kafkapy.audit")

# The interval at which the thread looks for new records, and the pause after an error.
LOOK_S = 1.0
ERROR_PAUSE_S = 5.0
LONGEST_STEP_MS = 5000
# Partitions that one call on the reactor's thread compares with their positions, and logs that it returns.
PARTITIONS_AT_ONCE = 500
PARTS_AT_ONCE = 16
# Counts that are written at once, before ten seconds have passed.
MOST_UNWRITTEN_COUNTS = 50_000
# All positions are stored again at this interval, so that they do not expire (offsets.retention.minutes).
REFRESH_MS = 6 * 3600 * 1000
# The longest wait of a broker that stops.
LAST_STEP_TIMEOUT_S = 15.0

OnReactor = Callable[[Callable[[], Any]], Any]


class Writer(Protocol):
    """The interface of CountWriter, which writes the counts; tests of the audit pass an object without a cluster."""

    @property
    def is_open(self) -> bool: ...

    def open(self) -> None: ...

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]: ...

    def write(self, counts: Iterable[Count], positions: Mapping[TopicPartition, int]) -> None: ...

    def close(self) -> None: ...


class _Key(NamedTuple):
    """The key of one count of records: records with the same partition, client, outcome and time bucket are counted
    together.

    `client` is the number of the producing client in `AuditedLogs.names`. `is_aborted` is True for the records of
    aborted transactions. `bucket_ms` is the beginning of the time bucket in ms since 1970.
    """

    topic_partition: TopicPartition
    client: int
    is_aborted: bool
    bucket_ms: int


class BrokerAudit:
    """Counts the records of the audited partitions that this broker leads, and writes the counts every ten seconds.

    Records are counted from the logs, up to the last stable offset. One transaction writes the counts together with the
    offset in each partition up to which records are counted. After an error, after a kill and on the next leader,
    counting begins again at these offsets, so that each record is counted once. `start` and `stop` are called by the
    thread of the broker, `logs` is used on the reactor's thread, everything else on the thread of this object.
    """

    def __init__(self, logs: AuditedLogs, writer: Writer, on_reactor: OnReactor, clock: Clock) -> None:
        """Creates an audit that is not started.

        `on_reactor` runs work on the reactor's thread and returns its result. It raises CancelledError if the reactor's
        thread has ended.
        """
        self.logs = logs
        self._writer = writer
        self._on_reactor = on_reactor
        self._clock = clock
        self._counter = LogCounter(BUCKET_MS, self._collect)
        self._leaderships: dict[TopicPartition, Leadership] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._unwritten: set[TopicPartition] = set()  # their positions have changed since the last transaction
        self._broken: set[int] = set()  # serials of leaderships over logs that cannot be counted
        self._counts: Counter[_Key] = Counter()
        self._counted = TopicPartition("", 0)
        self._write_at_ms = 0
        self._refresh_at_ms = clock.monotonic_ms() + REFRESH_MS
        self._uncounted = 0
        self._is_stopping = False
        self._wakes = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafkapy-audit", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Counts and writes what is in the logs now, unless the brokers cannot be reached, and ends the thread.

        Waits at most LAST_STEP_TIMEOUT_S seconds. What is not written now is counted after the next start.
        """
        self._is_stopping = True
        self._wakes.set()
        if self._thread.is_alive():
            self._thread.join(LAST_STEP_TIMEOUT_S)

    # -- the thread

    def _run(self) -> None:
        pause_s = LOOK_S
        is_last = False
        while not is_last:
            self._wakes.wait(pause_s)
            is_last = self._is_stopping
            try:
                pause_s = 0.0 if self.step(is_last=is_last) else LOOK_S
            except CancelledError:
                break
            except (KafkapyError, OSError, ValueError) as error:
                logger.warning("The audit counts again from its last position on: %s", error)
                self._begin_again()
                pause_s = ERROR_PAUSE_S
        self._writer.close()

    def step(self, *, is_last: bool = False) -> bool:
        """Counts the new records, and writes the counts if ten seconds have passed or `is_last` is True.

        Returns True if there may be further records, because the step has ended after LONGEST_STEP_MS. Raises
        KafkapyError, OSError, ValueError or CancelledError; the state is then inconsistent until `_begin_again` is
        called.
        """
        if is_last and not self._writer.is_open:
            return False
        self._follow_leaders()
        end_ms = self._clock.monotonic_ms() + LONGEST_STEP_MS
        has_more = True
        while has_more and self._clock.monotonic_ms() < end_ms:
            has_more = self._count_parts()
            if len(self._counts) >= MOST_UNWRITTEN_COUNTS or self._is_due():
                self._write()
        if is_last:
            self._write()
        return has_more

    def _begin_again(self) -> None:
        """Forgets all counts and positions, so that the next step reads the positions that are stored."""
        self._writer.close()
        self._leaderships.clear()
        self._positions.clear()
        self._unwritten.clear()
        self._counts.clear()

    def _is_due(self) -> bool:
        if self._clock.monotonic_ms() >= self._refresh_at_ms:
            self._unwritten.update(self._positions)
            self._refresh_at_ms = self._clock.monotonic_ms() + REFRESH_MS
        return bool(self._unwritten) and self._clock.monotonic_ms() >= self._write_at_ms

    def _follow_leaders(self) -> None:
        """Looks up the stored positions of the partitions that this broker has begun to lead.

        Drops the positions of partitions that it no longer leads.
        """
        present = self._drop_former()
        now_ms = self._clock.monotonic_ms()
        new = {
            topic_partition: leadership
            for topic_partition, leadership in present.items()
            if topic_partition not in self._leaderships
            and leadership.counts_from_ms <= now_ms
            and leadership.serial not in self._broken
        }
        if not new:
            return
        self._writer.open()
        for topic_partition, offset in self._writer.positions(new).items():
            self._leaderships[topic_partition] = new[topic_partition]
            if offset is None:
                offset = new[topic_partition].begin_offset
                self._unwritten.add(topic_partition)
                self._write_at_ms = 0
            self._positions[topic_partition] = offset

    def _drop_former(self) -> Mapping[TopicPartition, Leadership]:
        """Drops the partitions that this broker no longer leads; returns the present leaderships."""
        present: Mapping[TopicPartition, Leadership] = self._on_reactor(self.logs.leaderships)
        self._drop({each for each, leadership in self._leaderships.items() if present.get(each) != leadership})
        return present

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forgets partitions; their next leaders count from the stored positions on."""
        if not partitions:
            return
        for topic_partition in partitions:
            del self._leaderships[topic_partition], self._positions[topic_partition]
            self._unwritten.discard(topic_partition)
        for key in [key for key in self._counts if key.topic_partition in partitions]:
            del self._counts[key]

    def _count_parts(self) -> bool:
        """Counts one part of each log that has new records; returns True if at least one log had new records."""
        found = False
        for wanted in self._groups():
            parts = self._on_reactor(partial(self.logs.read, wanted, PARTS_AT_ONCE))
            for topic_partition, part in parts.items():
                self._count_part(topic_partition, part)
                found = True
        return found

    def _count_part(self, topic_partition: TopicPartition, part: LogPart) -> None:
        self._counted = topic_partition
        before = self._positions.pop(topic_partition)  # the partition becomes the last one to be looked at
        if part.start_offset > before:
            logger.warning(
                "%s: the records from offset %d to %d were deleted before they were counted",
                topic_partition, before, part.start_offset,
            )  # fmt: skip
        self._positions[topic_partition] = part.start_offset
        try:
            self._positions[topic_partition] = self._counter.count(part)
            self._unwritten.add(topic_partition)
        except ApiError as error:
            logger.error("%s is not counted any more: %s", topic_partition, error)
            self._broken.add(self._leaderships[topic_partition].serial)
            self._drop({topic_partition})

    def _groups(self) -> Iterator[list[tuple[TopicPartition, int, int]]]:
        """Yields (partition, serial of the leadership, position) of all partitions, in lists of limited length.

        One call on the reactor's thread reads the logs of one list, so that no call takes long.
        """
        every = iter([(each, self._leaderships[each].serial, offset) for each, offset in self._positions.items()])
        while group := list(islice(every, PARTITIONS_AT_ONCE)):
            yield group

    def _collect(self, taken: list[tuple[int, bool, int, int]]) -> None:
        for client, is_aborted, bucket_ms, number in taken:
            self._counts[_Key(self._counted, client, is_aborted, bucket_ms)] += number

    def _write(self) -> None:
        """Writes the counts of all partitions of a topic together, and the changed positions."""
        self._drop_former()
        sums: Counter[tuple[str, str, str, int]] = Counter()
        for key, number in self._counts.items():
            client = self.logs.names.name(key.client)
            sums[APPENDED, client, key.topic_partition.topic, key.bucket_ms] += number
            if key.is_aborted:
                sums[ABORTED, client, key.topic_partition.topic, key.bucket_ms] += number
        positions = {each: self._positions[each] for each in self._unwritten}
        if positions:
            counts = (
                Count(tier, client, "", topic, bucket_ms, number)
                for (tier, client, topic, bucket_ms), number in sums.items()
            )
            self._writer.write(counts, positions)
            self._on_reactor(lambda: self.logs.forget(positions))
        self._counts.clear()
        self._unwritten.clear()
        self._write_at_ms = self._clock.monotonic_ms() + REPORT_MS
        if self._counter.uncounted > self._uncounted:
            logger.warning(
                "%d records were not counted: their batches have too many time buckets",
                self._counter.uncounted - self._uncounted,
            )
            self._uncounted = self._counter.uncounted
