"""Every client writes and reads records with keys, headers, timestamps and every codec, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.client import Client
from tests.clients.conftest import CLIENTS
from tests.clients.records import CODECS, SentRecord, assert_same, make_records

PARTITIONS = 3
EVERYTHING = tuple(name for name in CLIENTS if name not in ("kcat", "console"))
Clients = Callable[[str], Client]
NewTopic = Callable[[int], str]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_library(
    name: str, codec: str, clients: Clients, new_topic: NewTopic, bootstrap: str, record_count: int
) -> None:
    client, topic = clients(name), new_topic(PARTITIONS)
    sent = sent_by(client, record_count)
    client.produce(bootstrap, topic, codec, sent)
    assert_same(sent, client.consume(bootstrap, topic, PARTITIONS, record_count))


def sent_by(client: Client, count: int, seed: int = 0) -> list[SentRecord]:
    """Returns `count` records, none of which the client refuses to send."""
    return [record for record in make_records(2 * count, PARTITIONS, seed) if client.can_carry(record)][:count]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", ["kcat", "console"])
def test_console_tool(
    name: str, codec: str, clients: Clients, new_topic: NewTopic, bootstrap: str, record_count: int
) -> None:
    """The tools choose timestamps, and the console producer partitions; a library reads the expected records."""
    client, topic = clients(name), new_topic(PARTITIONS)
    sent = make_records(record_count, PARTITIONS, text=True)
    client.produce(bootstrap, topic, codec, sent)
    written = clients("confluent-kafka").consume(bootstrap, topic, PARTITIONS, record_count)
    assert_same(written, client.consume(bootstrap, topic, PARTITIONS, record_count))
    assert sorted(map(_content, written)) == sorted(map(_content, sent))


def _content(record: SentRecord) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
    return record.key, record.value, record.headers


@pytest.mark.timeout(600)
@pytest.mark.parametrize("reader", EVERYTHING)
def test_each_reads_what_all_wrote(
    reader: str, clients: Clients, new_topic: NewTopic, bootstrap: str, record_count: int
) -> None:
    """Every library writes to one topic with every codec, and each client reads all of these records."""
    topic = new_topic(PARTITIONS)
    share = max(record_count // 25, 10)
    sent: list[SentRecord] = []
    for number, name in enumerate(EVERYTHING if reader == EVERYTHING[0] else ("confluent-kafka", "java-4.3")):
        for place, codec in enumerate(CODECS):
            records = sent_by(clients(name), share, seed=100 * number + place)
            clients(name).produce(bootstrap, topic, codec, records)
            sent += records
    assert_same(sent, clients(reader).consume(bootstrap, topic, PARTITIONS, len(sent)))
