"""Records that one client writes and the others read, and the form in which each reader must return them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import NamedTuple

from tests.clients.legacy.catalog import BY_NAME, TriedClient
from tests.clients.legacy.clients import TriedClients
from tests.clients.legacy.shell_client import UNKNOWN_PARTITION
from tests.clients.records import SentRecord, by_partition, make_records

PARTITIONS = 3
NO_TIMESTAMP = -1
# The client that reads a console tool's records to find out the partitions and timestamps that the tool chose.
WITNESS = "java-4.3.0"


class Content(Enum):
    """The kind of records in a topic."""

    ANYTHING = "anything"
    NO_NULL_HEADERS = "no null headers"
    TEXT = "text"


class Written(NamedTuple):
    """A topic and its records, as a reader that supports every feature sees them."""

    topic: str
    records: list[SentRecord]


class Carriage:
    """Checks pairs of a writer and a reader; writes each kind of topic once, at its first use. Not thread-safe.

    `new_topic` creates an empty topic with a number of partitions; `count` records are written to each topic.
    """

    def __init__(self, clients: TriedClients, bootstrap: str, new_topic: Callable[[int], str], count: int) -> None:
        self._clients = clients
        self._bootstrap = bootstrap
        self._new_topic = new_topic
        self._count = count
        self._written: dict[tuple[str, str, Content], Written] = {}

    def check(self, writer: str, codec: str, reader: str) -> None:
        """Checks that the reader reads all records of the writer. Raises AssertionError with the difference."""
        written = self._topic(writer, codec, content_for(BY_NAME[writer], BY_NAME[reader]))
        received = self._clients[reader].consume(self._bootstrap, written.topic, PARTITIONS, len(written.records))
        assert_seen(BY_NAME[reader], written.records, received)

    def _topic(self, writer: str, codec: str, content: Content) -> Written:
        kind = (writer, codec, content)
        if kind not in self._written:
            self._written[kind] = self._write(BY_NAME[writer], codec, content)
        return self._written[kind]

    def _write(self, writer: TriedClient, codec: str, content: Content) -> Written:
        topic, sent = self._new_topic(PARTITIONS), records_for(writer, self._count, content)
        self._clients[writer.name].produce(self._bootstrap, topic, codec, sent)
        if not writer.is_console:
            return Written(topic, sent)
        witnessed = self._clients[WITNESS].consume(self._bootstrap, topic, PARTITIONS, len(sent))
        assert sorted(map(_key_and_value, witnessed)) == sorted(map(_key_and_value, sent))
        return Written(topic, witnessed)


def content_for(writer: TriedClient, reader: TriedClient) -> Content:
    """Returns the most general content that both clients support; headers that the reader drops do not count."""
    if writer.is_console or reader.is_console:
        return Content.TEXT
    if not writer.writes_headers or (writer.writes_null_headers and reader.reads_null_headers):
        return Content.ANYTHING
    return Content.NO_NULL_HEADERS


def records_for(writer: TriedClient, count: int, content: Content) -> list[SentRecord]:
    """Returns `count` records that the writer can express, with the offsets that they will get."""
    return _records(
        count,
        content,
        writer.writes_headers,
        writer.writes_empty_records,
        writer.timestamps,
    )


@cache
def _records(count: int, content: Content, headers: bool, empty_records: bool, timestamps: bool) -> list[SentRecord]:
    # about one record in sixteen has neither key nor value, and may be skipped
    candidates = iter(make_records(2 * count + 10, PARTITIONS, text=content is Content.TEXT))
    chosen: list[SentRecord] = []
    next_offsets = [0] * PARTITIONS
    while len(chosen) < count:
        record = next(candidates)
        if record.key is None and record.value is None and not empty_records:
            continue
        if not headers:
            record = record._replace(headers=())
        elif content is Content.NO_NULL_HEADERS:
            record = record._replace(headers=tuple(pair for pair in record.headers if pair[1] is not None))
        timestamp = record.timestamp if timestamps else NO_TIMESTAMP
        chosen.append(record._replace(timestamp=timestamp, offset=next_offsets[record.partition]))
        next_offsets[record.partition] += 1
    return chosen


def assert_seen(reader: TriedClient, written: list[SentRecord], received: list[SentRecord]) -> None:
    """Checks that the reader received all records once, in order, and byte for byte.

    Parts of a record that the reader cannot show, such as headers, are not compared.
    """
    if any(record.partition == UNKNOWN_PARTITION for record in received):
        received = _placed(written, received)
    expected = by_partition((_as_seen(reader, record) for record in written), with_offset=True)
    actual = by_partition((_as_seen(reader, record) for record in received), with_offset=True)
    counts = {partition: len(records) for partition, records in expected.items()}
    found = {partition: len(records) for partition, records in actual.items()}
    assert found == counts, f"records by partition: {found} instead of {counts}"
    for partition, records in expected.items():
        for wanted, seen in zip(records, actual[partition], strict=True):
            assert seen == wanted, f"read {seen}\nnot  {wanted}"


def _as_seen(reader: TriedClient, record: SentRecord) -> SentRecord:
    seen = record if reader.reads_headers else record._replace(headers=())
    return seen if reader.timestamps else seen._replace(timestamp=NO_TIMESTAMP)


def _placed(written: list[SentRecord], received: list[SentRecord]) -> list[SentRecord]:
    """Returns the received records with the partition and offset of the written record that has the same key.

    The keys of the text records are unique.
    """
    places = {record.key: (record.partition, record.offset) for record in written}
    missing = [record for record in received if record.key not in places]
    assert not missing, f"nobody wrote {missing[:3]}"
    return [record._replace(partition=places[record.key][0], offset=places[record.key][1]) for record in received]


def _key_and_value(record: SentRecord) -> tuple[bytes | None, bytes | None]:
    return record.key, record.value
