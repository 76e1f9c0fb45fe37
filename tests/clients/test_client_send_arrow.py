"""Rows of tables as records: tables of each library, order and partitions, refusals, and transactions."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable

import duckdb
import pandas
import polars
import pyarrow
import pytest

from kafkapy.client import ApiError, Consumer, ConsumerRecord, Producer, RangeReader, UndeliveredRows
from kafkapy.client.partitioner import default_partition
from kafkapy.errors import Error
from tests.clients.conftest import set_topic_config

NewTopic = Callable[[int], str]
PAIRS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
WHEN = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
WHEN_MS = 1_714_564_800_000


def read(bootstrap: str, topic: str, partitions: int, count: int, **settings: object) -> list[ConsumerRecord]:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([(topic, number) for number in range(partitions)])
        found: list[ConsumerRecord] = []
        while len(found) < count:
            records = consumer.poll(20)
            assert records, f"{len(found)} of {count}"
            found += records
        return found


def rows() -> dict[str, list]:
    """Returns 500 rows in columns, with keys and values that are short, long or null."""
    return {
        "key": [None if number % 7 == 0 else f"key-{number % 50}" for number in range(500)],
        "value": [None if number % 9 == 0 else f"{number}" + "-" * (number % 40) for number in range(500)],
        "other": list(range(500)),
    }


def from_duckdb(columns: dict[str, list]) -> object:
    table = pyarrow.table(columns)
    return duckdb.connect().from_arrow(table).order("other").project("key, value, other + 1 AS other")


LIBRARIES: dict[str, Callable[[dict[str, list]], object]] = {
    "pyarrow": pyarrow.table,
    "pyarrow-batch": pyarrow.record_batch,
    "pyarrow-reader": lambda columns: pyarrow.table(columns).to_reader(max_chunksize=30),
    "polars": polars.DataFrame,
    "pandas": pandas.DataFrame,
    "duckdb": from_duckdb,
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_of_each_library(bootstrap: str, new_topic: NewTopic, library: str) -> None:
    topic, columns = new_topic(3), rows()
    with Producer(bootstrap_servers=bootstrap, batch_size=2000, compression_type="lz4") as producer:
        delivery = producer.send_arrow(topic, LIBRARIES[library](columns))
        assert delivery.row_count == 500 and delivery.result(30) == 500
    found = read(bootstrap, topic, 3, 500)
    expected: dict[int, list[tuple]] = {0: [], 1: [], 2: []}
    for key, value in zip(columns["key"], columns["value"], strict=True):
        if key is not None:
            expected[default_partition(key.encode(), 3)].append((key.encode(), value and value.encode()))
    for partition, records in expected.items():
        keyed = [(each.key, each.value) for each in found if each.partition == partition and each.key is not None]
        assert keyed == records
    without_key = [value and value.encode() for key, value in zip(columns["key"], columns["value"], strict=True)
                   if key is None]  # fmt: skip
    assert {each.value for each in found if each.key is None} == set(without_key)


def test_every_column(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    table = pyarrow.table(
        {
            "value": pyarrow.array([b"a", b"b", None], pyarrow.large_binary()),
            "partition": pyarrow.array([2, 0, 2], pyarrow.int32()),
            "timestamp": pyarrow.array([WHEN, WHEN + datetime.timedelta(milliseconds=5), None]),
            "headers": pyarrow.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], [], None], PAIRS),
        }
    )
    with Producer(bootstrap_servers=bootstrap) as producer:
        assert producer.send_arrow(topic, table).result(30) == 3
    found = sorted(read(bootstrap, topic, 3, 3), key=lambda each: (each.partition, each.offset))
    assert [(each.partition, each.value, each.headers) for each in found] == [
        (0, b"b", ()),
        (2, b"a", (("h", b"1"), ("h", None))),
        (2, None, ()),
    ]
    assert [each.timestamp for each in found[:2]] == [WHEN_MS + 5, WHEN_MS] and found[2].timestamp > WHEN_MS


def test_fetched_columns_are_sent_on(bootstrap: str, new_topic: NewTopic) -> None:
    source, target = new_topic(1), new_topic(1)
    with Producer(bootstrap_servers=bootstrap) as producer, RangeReader(bootstrap_servers=bootstrap) as reader:
        for number in range(50):
            producer.send(source, str(number), str(number % 3), headers={"h": b"x"}, timestamp=WHEN_MS + number)
        producer.flush()
        columns = ["key", "value", "timestamp", "headers"]
        for batch in reader.read((source, 0), 0, 50, columns=columns, max_rows=7):
            producer.send_arrow(target, batch)
    first, second = (
        [(each.key, each.value, each.timestamp, each.headers) for each in read(bootstrap, topic, 1, 50)]
        for topic in (source, target)
    )
    assert first == second


def test_memory_is_waited_for(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    values = [b"%04d" % number * 200 for number in range(1000)]
    with Producer(bootstrap_servers=bootstrap, buffer_memory=40_000, batch_size=10_000, linger_ms=1000) as producer:
        delivery = producer.send_arrow(topic, pyarrow.table({"value": values, "partition": [0, 1] * 500}))
        assert delivery.result(30) == 1000
        assert producer.memory_used == 0
    found = read(bootstrap, topic, 2, 1000)
    for partition in (0, 1):
        assert [each.value for each in found if each.partition == partition] == values[partition::2]


@pytest.mark.parametrize("idempotent", [True, False])
def test_refused_rows_are_named_and_their_neighbours_written(
    bootstrap: str, new_topic: NewTopic, idempotent: bool
) -> None:
    topic, large = new_topic(1), [3, 150, 151, 299]
    set_topic_config(bootstrap, topic, "max.message.bytes", "3000")
    values = [f"{number}" + "x" * (4000 if number in large else 20) for number in range(300)]
    with Producer(bootstrap_servers=bootstrap, enable_idempotence=idempotent, retries=3) as producer:
        delivery = producer.send_arrow(topic, polars.DataFrame({"value": values}))
        with pytest.raises(UndeliveredRows, match=r"4 of 300 rows were not delivered .* row 3: MESSAGE_TOO_LARGE"):
            delivery.result(30)
    assert sorted(row for each in delivery.failures for row in each.rows) == large
    assert {each.error.error for each in delivery.failures if isinstance(each.error, ApiError)} == {
        Error.MESSAGE_TOO_LARGE
    }
    assert len(read(bootstrap, topic, 1, 296)) == delivery.delivered == 296


def test_transactions(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"id-{uuid.uuid4()}") as producer:
        producer.init_transactions()
        for word, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction),
                          ("last", producer.commit_transaction)):  # fmt: skip
            producer.begin_transaction()
            delivery = producer.send_arrow(topic, pandas.DataFrame({"value": [word] * 40}))
            producer.flush()
            assert delivery.result(30) == 40
            end()
    found = read(bootstrap, topic, 1, 80, isolation_level="read_committed")
    assert [each.value for each in found] == [b"kept"] * 40 + [b"last"] * 40


def test_a_refused_row_fails_the_transaction(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    set_topic_config(bootstrap, topic, "max.message.bytes", "3000")
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"id-{uuid.uuid4()}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_arrow(topic, pyarrow.table({"value": ["a", "x" * 4000, "b"]}))
        with pytest.raises(ApiError) as raised:
            producer.commit_transaction()
        assert raised.value.error is Error.MESSAGE_TOO_LARGE
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send_arrow(topic, pyarrow.table({"value": ["c", "d"]}))
        producer.commit_transaction()
    found = read(bootstrap, topic, 1, 2, isolation_level="read_committed")
    assert [each.value for each in found] == [b"c", b"d"]
