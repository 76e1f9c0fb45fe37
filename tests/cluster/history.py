"""A history of produced and consumed records while nodes fail, and the check that Kafka keeps its promises."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple


class Outcome(Enum):
    """The knowledge of a client about a record that it sent, or about the end of a transaction."""

    DONE = "acknowledged, or committed"
    NOT_DONE = "certainly not written, or aborted"
    UNKNOWN = "either; no answer told which"


class Sent(NamedTuple):
    """A record that a producer sent, and its outcome.

    The producer numbers its records from 0 in each partition (`number`). `transaction` is the producer's number of a
    transaction, None outside of one.
    """

    producer: str
    partition: int
    number: int
    outcome: Outcome
    offset: int = -1
    transaction: int | None = None

    @property
    def value(self) -> bytes:
        return value_of(self.producer, self.partition, self.number)


class Read(NamedTuple):
    """A record that a consumer read. `session` counts its assignments and seeks: within one, offsets increase."""

    consumer: str
    session: int
    partition: int
    offset: int
    value: bytes


def value_of(producer: str, partition: int, number: int) -> bytes:
    """Returns the value by which a record is recognized."""
    return f"{producer}/{partition}/{number}".encode()


class History:
    """All that happened to the records of one topic. `sent` and `reads` may be appended to by one thread each.

    `transactions` has the end of each transaction by producer and number.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.reads: list[Read] = []
        self.transactions: dict[tuple[str, int], Outcome] = {}

    def complaints(self, log: Sequence[Read], *, has_duplicates: bool = False) -> list[str]:
        """Returns a sentence for each broken promise, none if all were kept.

        `log` is the whole topic at the end, read with read_committed. With `has_duplicates` the producers are not
        idempotent: a record may be there more than once, and a retry may be behind later records.
        """
        by_value: dict[bytes, list[Read]] = defaultdict(list)
        for read in log:
            by_value[read.value].append(read)
        found = [*self._lost_and_moved(by_value), *self._of_transactions(by_value)]
        if not has_duplicates:
            found += _duplicated(log)
            found += _reordered(log)
        found += self._invented(log)
        found += jumps(self.reads)
        found += vanished(self.reads, log)
        return found

    def check(self, log: Sequence[Read], *, has_duplicates: bool = False) -> None:
        """Raises AssertionError, which has the first complaints, if there are any."""
        complaints = self.complaints(log, has_duplicates=has_duplicates)
        assert not complaints, f"{len(complaints)} complaints:\n" + "\n".join(complaints[:20])

    def count(self, outcome: Outcome) -> int:
        """Returns the number of records that were sent with this outcome."""
        return sum(sent.outcome is outcome for sent in self.sent)

    def _is_promised(self, sent: Sent) -> bool:
        """Returns True if the record must be in the log: acknowledged, and its transaction committed."""
        if sent.transaction is None:
            return sent.outcome is Outcome.DONE
        return self.transactions.get((sent.producer, sent.transaction)) is Outcome.DONE

    def _lost_and_moved(self, by_value: dict[bytes, list[Read]]) -> Iterable[str]:
        for sent in self.sent:
            places = by_value.get(sent.value, ())
            if self._is_promised(sent):
                if not places:
                    yield f"lost: {sent.value!r}, acknowledged at {sent.partition}:{sent.offset}"
                elif sent.offset >= 0 and (sent.partition, sent.offset) not in {each[2:4] for each in places}:
                    where = [f"{each.partition}:{each.offset}" for each in places]
                    yield f"moved: {sent.value!r}, acknowledged at {sent.partition}:{sent.offset}, is at {where}"
            elif places and sent.transaction is None and sent.outcome is Outcome.NOT_DONE:
                yield f"written although refused: {sent.value!r}"

    def _of_transactions(self, by_value: dict[bytes, list[Read]]) -> Iterable[str]:
        members: dict[tuple[str, int], list[Sent]] = defaultdict(list)
        for sent in self.sent:
            if sent.transaction is not None:
                members[sent.producer, sent.transaction].append(sent)
        for key, records in members.items():
            outcome = self.transactions.get(key, Outcome.UNKNOWN)
            there = [sent for sent in records if sent.value in by_value]
            if outcome is Outcome.NOT_DONE and there:
                yield f"aborted transaction {key} can be read: {there[0].value!r}"
            elif outcome is Outcome.UNKNOWN and 0 < len(there) < len(records):
                yield f"torn transaction {key}: {len(there)} of {len(records)} records can be read"

    def _invented(self, log: Iterable[Read]) -> Iterable[str]:
        known = {sent.value for sent in self.sent}
        for read in log:
            if read.value not in known:
                yield f"nobody sent {read.value!r}, which is at {read.partition}:{read.offset}"


def vanished(reads: Iterable[Read], log: Iterable[Read]) -> Iterable[str]:
    """Yields a sentence for each read of a record that is not in the log, or not at its place.

    `log` is the whole topic at the end, read with the isolation level of the reads. What a consumer may read lies below
    the high watermark, or below the last stable offset, and stays.
    """
    final = {(read.partition, read.offset): read.value for read in log}
    for read in reads:
        value = final.get((read.partition, read.offset))
        if value != read.value:
            yield f"{read.consumer} read {read.value!r} at {read.partition}:{read.offset}, where {value!r} is now"


def _duplicated(log: Iterable[Read]) -> Iterable[str]:
    for value, count in Counter(read.value for read in log).items():
        if count > 1:
            yield f"duplicated: {value!r} is there {count} times"


def _reordered(log: Iterable[Read]) -> Iterable[str]:
    last: dict[tuple[int, bytes], tuple[int, Read]] = {}
    for read in sorted(log, key=lambda read: (read.partition, read.offset)):
        producer, _, number = read.value.rpartition(b"/")
        key = (read.partition, producer)
        if key in last and int(number) < last[key][0]:
            yield f"reordered: {read.value!r} at {read.partition}:{read.offset} is behind {last[key][1].value!r}"
        last[key] = (int(number), read)


def jumps(reads: Iterable[Read]) -> Iterable[str]:
    """Yields a sentence for each read that does not follow the one before in its session."""
    last: dict[tuple[str, int, int], int] = {}
    for read in reads:
        key = (read.consumer, read.session, read.partition)
        if read.offset <= last.get(key, -1):
            yield f"{read.consumer} read {read.partition}:{read.offset} after {last[key]} of the same partition"
        last[key] = read.offset
