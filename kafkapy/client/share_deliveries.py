"""The records that a share consumer has fetched: buffered, then delivered to the application, then acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from kafkapy._core.client.fetched_records import AcquiredOffsets, ConsumerRecord, FetchedRecords
from kafkapy.client.acknowledgements import NO_RECORD, Acknowledgements, AcknowledgeType, runs_of
from kafkapy.client.errors import AcknowledgementError, ApiError, UnreadableRecords
from kafkapy.client.share_session import SharePartition
from kafkapy.named_tuple import NamedTuple

_NOT_ACKNOWLEDGEABLE = "The record cannot be acknowledged."


class ShareSource(NamedTuple):
    """The broker that has delivered records of a partition, and to which they are acknowledged."""

    node_id: int
    partition: SharePartition


ToSend = dict[ShareSource, Acknowledgements]


class FetchedShare:
    """The data of one partition in a ShareFetch response: the batches (`fetched`), and the offsets that were acquired
    for this member (`acquired`).

    A batch may also contain records that were not acquired. Only the records at acquired offsets are delivered to the
    application.
    """

    __slots__ = ("acquired", "failure", "fetched", "lock_timeout_ms", "source", "undelivered")

    def __init__(
        self, source: ShareSource, fetched: FetchedRecords, acquired: AcquiredOffsets, lock_timeout_ms: int | None
    ) -> None:
        self.source = source
        self.fetched = fetched
        self.acquired = acquired
        self.lock_timeout_ms = lock_timeout_ms
        self.undelivered: list[ConsumerRecord] = []  # after a record that cannot be deserialized, in order
        # Raised by the next poll, with the preliminary acknowledgement of its records.
        self.failure: tuple[UnreadableRecords, AcknowledgeType] | None = None

    @property
    def is_exhausted(self) -> bool:
        """Returns whether all records were delivered and all errors of unreadable records raised."""
        return self.acquired.first_offset is None and not self.undelivered and self.failure is None


class DeliveredRecords:
    """The delivered records of one partition, and the application's acknowledgements of them.

    `unreadable` are offsets that could not be returned, which may be acknowledged too.
    """

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._lookup: set[int] | None = None  # the set of `_offsets`, built by the first explicit acknowledgement
        self._types: dict[int, AcknowledgeType] = {}
        self._parts: list[tuple[int, int, int]] = []  # gaps and accepted runs
        self._renewals: dict[int, ConsumerRecord] = {}
        self.unreadable: dict[int, AcknowledgeType] = {}

    def deliver(self, records: Iterable[ConsumerRecord]) -> None:
        """Adds records that the application receives now."""
        self._offsets += [record.offset for record in records]
        self._lookup = None

    def add_gaps(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Adds ranges of acquired offsets that have no record; a range is (first offset, last offset), both included.

        These offsets are acknowledged with the type 0, with which the protocol marks a gap.
        """
        self._parts += [(first, last, NO_RECORD) for first, last in ranges]

    def add_unreadable(self, ranges: Iterable[tuple[int, int]], kind: AcknowledgeType) -> None:
        """Adds ranges of offsets, first and last inclusive, whose records could not be returned to the application.

        They are acknowledged with `kind` unless the application acknowledges them otherwise.
        """
        for first, last in ranges:
            self.unreadable.update(dict.fromkeys(range(first, last + 1), kind))

    def contains(self, offset: int, record: ConsumerRecord | None) -> bool:
        """Returns whether the offset may be acknowledged: it was delivered, and no acknowledgement of it was committed.

        `record` is None for an offset that could not be returned.
        """
        if record is None:
            return offset in self.unreadable
        if self._lookup is None:
            self._lookup = set(self._offsets)
        return offset in self._lookup

    def acknowledge(self, offset: int, kind: AcknowledgeType, record: ConsumerRecord | None) -> None:
        """Acknowledges one offset for which `contains` returns True; a later call overrides an earlier one.

        `record` is None for an offset that could not be returned.
        """
        if record is None:
            self.unreadable[offset] = kind
            return
        self._types[offset] = kind
        if kind is AcknowledgeType.RENEW:
            self._renewals[offset] = record
        else:
            self._renewals.pop(offset, None)

    def accept_all(self, unread: Collection[int] = ()) -> None:
        """Accepts all delivered records except `unread`, the offsets that iteration has not returned yet."""
        accepted = [offset for offset in self._offsets if offset not in unread] if unread else self._offsets
        self._parts += runs_of(accepted, AcknowledgeType.ACCEPT)
        self._offsets = [offset for offset in self._offsets if offset in unread]
        self._lookup = None

    @property
    def is_acknowledged(self) -> bool:
        """Returns whether every delivered record is acknowledged."""
        return len(self._types) == len(self._offsets)

    @property
    def is_empty(self) -> bool:
        """Returns whether nothing is left to acknowledge."""
        return not self._offsets

    def take(self) -> Acknowledgements | None:
        """Returns the acknowledgements so far, or None if there are none, and removes the acknowledged records."""
        parts = [*self._parts, *((offset, offset, kind) for offset, kind in self._types.items())]
        parts += [(offset, offset, kind) for offset, kind in self.unreadable.items()]
        if not parts:
            return None
        taken = Acknowledgements(parts, self._renewals)
        self._offsets = [offset for offset in self._offsets if offset not in self._types]
        self._lookup = None
        self._types, self._parts, self._renewals, self.unreadable = {}, [], {}, {}
        return taken


class ShareDeliveries:
    """The buffered and the delivered records of a share consumer.

    `add`, `renewed`, `take` and `collect_renewed` are called while `Network.lock`, the lock of the client's network
    loop, is held. The application's thread calls the other methods without this lock. `deserialize(record)` returns the
    record with deserialized key and value; None leaves them as bytes. `lock_timeout_ms` is the time limit of the
    acquisition locks of the records that were delivered last.
    """

    def __init__(self, deserialize: Callable[[ConsumerRecord], ConsumerRecord] | None) -> None:
        self._deserialize = deserialize
        self._buffers: deque[FetchedShare] = deque()
        self._delivered: dict[ShareSource, DeliveredRecords] = {}
        self._renewing = 0  # renewals without a response
        self._renewed: list[tuple[ShareSource, list[ConsumerRecord], int | None]] = []
        self.lock_timeout_ms: int | None = None

    def add(self, fetched: FetchedShare) -> None:
        """Buffers the data of one partition in a ShareFetch response."""
        self._buffers.append(fetched)

    @property
    def has_records(self) -> bool:
        """Returns whether `collect` may return records now."""
        return bool(self._renewed) or (not self._renewing and bool(self._buffers))

    @property
    def is_renewing(self) -> bool:
        """Returns whether a renewal still waits for its response, or renewed records wait for `collect_renewed`."""
        return bool(self._renewing or self._renewed)

    @property
    def has_buffers(self) -> bool:
        """Returns whether fetched records have not been delivered yet."""
        return bool(self._buffers)

    # Acknowledging

    def acknowledge(
        self, topic: str, partition: int, offset: int, kind: AcknowledgeType, record: ConsumerRecord | None
    ) -> None:
        """Acknowledges a delivered record; `record` is None for an offset whose record could not be returned.

        If the leader of the partition has changed, two brokers may have delivered records of it, and even the same
        record. It is then acknowledged to both. Raises AcknowledgementError if there is no such record.
        """
        is_found = False
        for source, delivered in self._delivered.items():
            if source.partition.topic_partition == (topic, partition) and delivered.contains(offset, record):
                delivered.acknowledge(offset, kind, record)
                is_found = True
        if not is_found:
            raise AcknowledgementError(_NOT_ACKNOWLEDGEABLE)

    def accept_all(self, unread: Sequence[ConsumerRecord] = ()) -> None:
        """Accepts all delivered records except `unread`, which iteration has not returned yet."""
        for source, delivered in self._delivered.items():
            of_source = source.partition.topic_partition
            delivered.accept_all({each.offset for each in unread if (each.topic, each.partition) == of_source})

    @property
    def is_acknowledged(self) -> bool:
        """Returns whether every delivered record is acknowledged."""
        return all(delivered.is_acknowledged for delivered in self._delivered.values())

    def take(self) -> ToSend:
        """Returns the acknowledgements to send, by the partition and broker of the records, and removes the
        acknowledged records.
        """
        taken: ToSend = {}
        for source, delivered in list(self._delivered.items()):
            acknowledgements = delivered.take()
            if acknowledgements is not None:
                taken[source] = acknowledgements
                self._renewing += bool(acknowledgements.renewals)
            if delivered.is_empty:
                del self._delivered[source]
        return taken

    def renewed(self, source: ShareSource, renewals: Iterable[ConsumerRecord], lock_timeout_ms: int | None) -> None:
        """Handles the response to one renewal of acquisition locks.

        `renewals` are the records whose locks were renewed, which the next `collect_renewed` returns; empty if the
        renewal failed. `lock_timeout_ms` is the time limit of the renewed locks, None if the response has none.
        """
        self._renewing -= 1
        records = sorted(renewals, key=lambda record: record.offset)
        if records:
            self._renewed.append((source, records, lock_timeout_ms))

    # Delivering

    def collect(self, limit: int) -> list[ConsumerRecord]:
        """Returns the records of the next batches. Adds whole batches until the result has at least `limit` records.

        Returns nothing while renewals wait for their response. Raises UnreadableRecords if the next records cannot be
        read; the next call continues after these records.
        """
        records: list[ConsumerRecord] = []
        if self.is_renewing:
            return records
        while self._buffers and len(records) < limit:
            buffer = self._buffers[0]
            delivered = self._delivered.get(buffer.source)
            if delivered is None:
                delivered = self._delivered[buffer.source] = DeliveredRecords()
            if buffer.failure is not None:
                if records:
                    break
                (failure, kind), buffer.failure = buffer.failure, None
                delivered.add_unreadable(failure.ranges, kind)
                raise failure
            found = self._read(buffer, delivered, limit - len(records))
            if found:
                delivered.deliver(found)
                records += found
                self.lock_timeout_ms = buffer.lock_timeout_ms
            if buffer.is_exhausted:
                self._buffers.popleft()
        return records

    def collect_renewed(self) -> list[ConsumerRecord]:
        """Returns the records whose locks were renewed, which the application must acknowledge once more."""
        renewed, self._renewed = self._renewed, []
        records: list[ConsumerRecord] = []
        for source, of_source, lock_timeout_ms in renewed:
            self._delivered.setdefault(source, DeliveredRecords()).deliver(of_source)
            records += of_source
            self.lock_timeout_ms = lock_timeout_ms or self.lock_timeout_ms
        return records

    def _read(self, buffer: FetchedShare, delivered: DeliveredRecords, limit: int) -> list[ConsumerRecord]:
        """Returns the next deserialized records of `buffer`, and adds the gaps between them to `delivered`.

        Takes whole batches until there are `limit` records. Sets `buffer.failure` if the record after them cannot be
        read or deserialized.
        """
        records, buffer.undelivered = buffer.undelivered, []
        try:
            if not records:
                records = buffer.fetched.take_acquired(limit, buffer.acquired)
        except ApiError as error:
            skipped = buffer.fetched.skip_batch(buffer.acquired)
            buffer.failure = _unreadable(buffer, skipped, error), AcknowledgeType.REJECT
        delivered.add_gaps(buffer.acquired.gaps)
        buffer.acquired.gaps = []
        if self._deserialize is None:
            return records
        found: list[ConsumerRecord] = []
        for record in records:
            try:
                found.append(self._deserialize(record))
            except Exception as error:
                buffer.undelivered = records[len(found) + 1 :]
                skipped = [(record.offset, record.offset)]
                buffer.failure = _unreadable(buffer, skipped, error), AcknowledgeType.RELEASE
                break
        return found


def _unreadable(buffer: FetchedShare, ranges: list[tuple[int, int]], cause: Exception) -> UnreadableRecords:
    failure = UnreadableRecords(buffer.source.partition.topic_partition, ranges, cause)
    failure.__cause__ = cause
    return failure
