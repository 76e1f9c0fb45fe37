"""Audit: producers, brokers and consumers count records by topic and time bucket, and a comparison of the counts finds
lost and repeated records.

The counts are written to a topic as msgpack arrays: version, tier, client, group, topic, time bucket (its beginning in
ms since 1970), count. The tier says what was done with the records: "produced", "appended" (to a broker's log),
"aborted" (appended by a transaction that was aborted), or "consumed". The timestamp of a record determines its time
bucket, so that all tiers count the record in the same time bucket.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from kafkapy.client.reliable.records import Output, SourceRecord
from kafkapy.client.reliable.side_channel import SideChannel, channel_producer
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import Clock, SystemClock

AUDIT_TOPIC = "__kafkapy_audit"
PRODUCED, CONSUMED = "produced", "consumed"
# The counts of brokers: the records in the logs, and those of them that belong to aborted transactions.
APPENDED, ABORTED = "appended", "aborted"
BUCKET_MS = 10_000
REPORT_MS = 10_000
# The greatest number of pairs of topic and time bucket whose counts wait to be written.
MOST_BUCKETS = 100_000
_VERSION = 1


class Count(NamedTuple):
    """The number of records of one topic and time bucket that a client has produced or consumed, or that a broker has
    in its logs.

    `tier` says what was done with the records: "produced", "consumed", "appended" to a log, or "aborted" (appended by a
    transaction that was aborted). `client` is the client id; in a broker's count it is the client id of the producer,
    or "" if the broker does not know it. `group` is the consumer's group, "" for other tiers. `bucket_ms` is the
    beginning of the time bucket in ms since 1970.
    """

    tier: str
    client: str
    group: str
    topic: str
    bucket_ms: int
    number: int


def pack_count(count: Count) -> bytes:
    """Encodes a count as the bytes that are stored."""
    import msgpack

    packed: bytes = msgpack.packb([_VERSION, *count])
    return packed


def unpack_count(content: bytes | None) -> Count:
    """Decodes a stored count. Raises ValueError if the bytes are not a count."""
    import msgpack

    try:
        fields: Any = msgpack.unpackb(content or b"")
        version, *rest = fields
        found = Count(*rest)
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise ValueError(f"The bytes are not a count of the audit: {error}") from error
    texts = (found.tier, found.client, found.group, found.topic)
    if version != _VERSION or not all(isinstance(each, str) for each in texts):
        raise ValueError("The bytes are not a count of the audit of this version")
    if not isinstance(found.bucket_ms, int) or not isinstance(found.number, int):
        raise ValueError("The bytes are not a count of the audit: the numbers are missing")
    return found


class AuditReporter:
    """Counts the records of one client, and writes the counts to a topic. Thread-safe.

    The counts are written by `close`, and by a call of `count` if ten seconds have passed since they were last written.
    If a count cannot be written, it is added to the next one. At most `MOST_BUCKETS` pairs of topic and time bucket are
    counted between two reports; `uncounted` is the number of records of further pairs, which are not counted.
    """

    def __init__(
        self,
        client: str,
        properties: Mapping[str, Any] | None = None,
        *,
        group: str = "",
        topic: str = AUDIT_TOPIC,
        bucket_ms: int = BUCKET_MS,
        clock: Clock | None = None,
        channel: SideChannel | None = None,
        **settings: Any,
    ) -> None:
        self._client = client
        self._group = group
        self._topic = topic
        self._bucket_ms = bucket_ms
        self._clock = clock or SystemClock()
        merged = {**(properties or {}), **{name.replace("_", "."): value for name, value in settings.items()}}
        self._channel = channel or SideChannel(
            channel_producer(merged), on_drop=self._take_back, thread_name="kafkapy-audit"
        )
        self._lock = Lock()
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._report_at_ms = self._clock.monotonic_ms() + REPORT_MS
        self.uncounted = 0

    def count(self, tier: str, topic: str, timestamp_ms: int, count: int = 1) -> None:
        """Counts `count` records in the time bucket that contains `timestamp_ms`.

        Writes all counts if ten seconds have passed since they were last written. `timestamp_ms` is in ms since 1970.
        `tier` is "produced" or "consumed", according to what the client has done with the records.
        """
        bucket = (tier, topic, timestamp_ms - timestamp_ms % self._bucket_ms)
        with self._lock:
            if bucket not in self._counts and len(self._counts) >= MOST_BUCKETS:
                self.uncounted += count
            else:
                self._counts[bucket] += count
            is_due = self._clock.monotonic_ms() >= self._report_at_ms
        if is_due:
            self.report()

    def report(self) -> None:
        """Sends the counts since the last report to the audit topic. Does not block: a thread in the background writes
        them.
        """
        with self._lock:
            self._report_at_ms = self._clock.monotonic_ms() + REPORT_MS
            counts, self._counts = self._counts, Counter()
        for (tier, topic, bucket_ms), number in counts.items():
            content = pack_count(Count(tier, self._client, self._group, topic, bucket_ms, number))
            self._channel.put(Output(self._topic, content, topic.encode()))

    def close(self, timeout: float = 10.0) -> bool:
        """Writes the counts and waits `timeout` seconds at most until they are written; returns whether all were."""
        self.report()
        is_written = self._channel.flush(timeout)
        self._channel.close(timeout)
        with self._lock:
            return is_written and not self._counts

    def _take_back(self, output: Output) -> None:
        found = unpack_count(output.value)
        with self._lock:
            self._counts[found.tier, found.topic, found.bucket_ms] += found.number


class ProducerAudit:
    """An element of a producer's `interceptor.classes`, which counts the acknowledged records."""

    def __init__(self, reporter: AuditReporter) -> None:
        self._reporter = reporter

    def on_acknowledgement(self, metadata: Any, error: BaseException | None) -> None:
        """Counts a record unless it has failed."""
        if error is None:
            self._reporter.count(PRODUCED, metadata.topic, metadata.timestamp)

    def close(self) -> None:
        """Writes the counts when the producer is closed."""
        self._reporter.close()


class ConsumerAudit:
    """An element of a consumer's `interceptor.classes`, which counts the records that polls return."""

    def __init__(self, reporter: AuditReporter) -> None:
        self._reporter = reporter

    def on_consume(self, records: list[Any]) -> list[Any]:
        """Counts the records and returns them unchanged."""
        each: SourceRecord
        for each in records:
            self._reporter.count(CONSUMED, each.topic, each.timestamp)
        return records

    def close(self) -> None:
        """Writes the counts when the consumer is closed."""
        self._reporter.close()


class Difference(NamedTuple):
    """A difference between the counts of two tiers, for the records of one topic and time bucket.

    A tier says what was done with the records: they were "produced" by producers, "appended" to the brokers' logs, or
    "consumed" by a consumer group. `between` names the two tiers that were compared, such as "produced, appended".
    `produced`, `appended` and `consumed` are their numbers of records; the number of the tier that was not compared is
    None. `appended` includes the records of aborted transactions. `aborted` is the number of these records, 0 if
    `appended` is None. `group` is the consumer group, "" if no consumed records were compared.

    `clients` divides the numbers by client, in pairs such as ("produced by CLIENT", number) and ("aborted by CLIENT",
    number). The client of an appended or aborted record is the producer that has sent the record; the client of a
    consumed record is the consumer.
    """

    topic: str
    bucket_ms: int
    between: str
    group: str
    produced: int | None
    appended: int | None
    aborted: int
    consumed: int | None
    clients: tuple[tuple[str, int], ...]

    @property
    def missing(self) -> int:
        """The number of records that the first of the two tiers has and the second lacks.

        A positive number means that records were lost or not read yet, a negative one that records were written or read
        twice.
        """
        if self.appended is None:
            return (self.produced or 0) - (self.consumed or 0)
        if self.consumed is None:
            return (self.produced or 0) - self.appended
        return self.appended - self.aborted - self.consumed


class AuditTable:
    """The sums of all counts. It has one entry in memory for each combination of topic, time bucket, tier, group and
    client.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], dict[tuple[str, str, str], int]] = defaultdict(lambda: defaultdict(int))
        self._groups: dict[str, set[str]] = defaultdict(set)
        # The first and the last time bucket of each topic for which there is a count of a broker.
        self._brokers_count: dict[str, tuple[int, int]] = {}
        self.record_count = 0

    def add(self, count: Count) -> None:
        """Adds a count."""
        self._counts[count.topic, count.bucket_ms][count.tier, count.group, count.client] += count.number
        self.record_count += 1
        if count.tier == CONSUMED:
            self._groups[count.topic].add(count.group)
        elif count.tier == APPENDED:
            first, last = self._brokers_count.get(count.topic, (count.bucket_ms, count.bucket_ms))
            self._brokers_count[count.topic] = (min(first, count.bucket_ms), max(last, count.bucket_ms))

    def differences(self, from_ms: int, to_ms: int, groups: Iterable[str] = ()) -> Iterator[Difference]:
        """Yields the differences between the counts of producers, brokers and consumer groups, in the order of time.

        Compares the counts of the time buckets that begin at or after `from_ms` and before `to_ms` (ms since 1970).
        `groups` are the groups to compare; if it is empty, every group that has read the topic is compared. The
        brokers' counts of a topic are compared with the producers' counts and with each group's counts, in the time
        buckets from the first to the last one with a broker's count. In all other time buckets the producers' counts
        are compared with each group's counts.
        """
        wanted = set(groups)
        for (topic, bucket_ms), counts in sorted(self._counts.items(), key=lambda each: (each[0][1], each[0][0])):
            if not from_ms <= bucket_ms < to_ms:
                continue
            bucket = _Bucket(topic, bucket_ms, counts)
            first, last = self._brokers_count.get(topic, (0, -1))
            is_counted = first <= bucket_ms <= last
            if is_counted:
                yield from bucket.lost_on_the_way()
            for group in sorted(wanted or self._groups[topic]):
                yield from bucket.differences_of(group, is_counted_by_brokers=is_counted)


class _Bucket:
    """The counts of one topic and time bucket, by tier, group and client."""

    def __init__(self, topic: str, bucket_ms: int, counts: Mapping[tuple[str, str, str], int]) -> None:
        self._topic = topic
        self._bucket_ms = bucket_ms
        self._counts = counts

    def lost_on_the_way(self) -> Iterator[Difference]:
        """Yields the difference between the producers' count and the brokers' count; nothing if they do not differ."""
        produced, appended = self._sum(PRODUCED), self._sum(APPENDED)
        if produced != appended:
            clients = self._clients((PRODUCED, ""), (APPENDED, ""))
            between = f"{PRODUCED}, {APPENDED}"
            yield Difference(
                self._topic, self._bucket_ms, between, "", produced, appended, self._sum(ABORTED), None, clients
            )

    def differences_of(self, group: str, *, is_counted_by_brokers: bool) -> Iterator[Difference]:
        """Yields the difference between the brokers' count and a group's count; nothing if the counts do not differ.

        If the brokers do not count, the group's count is compared with the producers' instead. A group that reads
        uncommitted records also counts the records of aborted transactions; if it has read all of them, it does not
        differ from the brokers.
        """
        consumed = self._sum(CONSUMED, group)
        produced, appended, aborted = self._sum(PRODUCED), self._sum(APPENDED), self._sum(ABORTED)
        if is_counted_by_brokers:
            if consumed not in (appended - aborted, appended):
                clients = self._clients((APPENDED, ""), (ABORTED, ""), (CONSUMED, group))
                between = f"{APPENDED}, {CONSUMED}"
                yield Difference(
                    self._topic, self._bucket_ms, between, group, None, appended, aborted, consumed, clients
                )
        elif produced != consumed:
            clients = self._clients((PRODUCED, ""), (CONSUMED, group))
            between = f"{PRODUCED}, {CONSUMED}"
            yield Difference(self._topic, self._bucket_ms, between, group, produced, None, 0, consumed, clients)

    def _sum(self, tier: str, group: str = "") -> int:
        return sum(number for (each, name, _), number in self._counts.items() if (each, name) == (tier, group))

    def _clients(self, *sides: tuple[str, str]) -> tuple[tuple[str, int], ...]:
        return tuple(
            (f"{tier} by {client or 'unknown clients'}", number)
            for side in sides
            for (tier, name, client), number in sorted(self._counts.items())
            if (tier, name) == side
        )
