"""Records as Arrow's columns: by a consumer with its positions and commits, and by ranges of offsets."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

import pyarrow
import pytest

from kafkapy.client import AsyncConsumer, Consumer, NoOffsetForPartition, Producer, RangeReader, TopicPartition
from kafkapy.errors import ConfigError

NewTopic = Callable[[int], str]
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
START_MS = 1_700_000_000_000


@pytest.fixture(params=["none", "gzip", "snappy", "lz4", "zstd"])
def filled(request: pytest.FixtureRequest, bootstrap: str, new_topic: NewTopic) -> str:
    """Returns a topic with two partitions of 500 records each."""
    topic = new_topic(2)
    with Producer(bootstrap_servers=bootstrap, batch_size=2000, compression_type=request.param) as producer:
        for number in range(1000):
            key = None if number % 5 else str(number)
            headers = [("n", str(number))] if number % 7 == 0 else None
            place = {"partition": number % 2, "timestamp": START_MS + number}
            producer.send(topic, str(number // 2), key, headers=headers, **place)
    return topic


def expected_row(topic: str, number: int) -> dict[str, object]:
    return {
        "key": None if number % 5 else str(number).encode(),
        "value": str(number // 2).encode(),
        "topic": topic,
        "partition": number % 2,
        "offset": number // 2,
        "timestamp": START_MS + number,
        "timestampType": 0,
        "headers": [{"key": "n", "value": str(number).encode()}] if number % 7 == 0 else None,
    }


def rows_of(batch: object) -> list[dict[str, object]]:
    rows = pyarrow.record_batch(batch)
    rows.validate(full=True)
    at = rows.schema.get_field_index("timestamp")
    if at >= 0:
        rows = rows.set_column(at, "timestamp", rows.column(at).cast(pyarrow.int64()))
    found: list[dict[str, object]] = rows.to_pylist()
    return found


def test_a_group_reads_columns_and_commits(bootstrap: str, filled: str) -> None:
    group = f"group-{uuid.uuid4()}"
    settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
    found: dict[int, list[dict[str, object]]] = {0: [], 1: []}
    with Consumer(enable_auto_commit=False, **settings) as consumer:
        consumer.subscribe([filled])
        while sum(map(len, found.values())) < 600:
            for batch in consumer.poll_arrow(20, columns=COLUMNS, max_rows=70, timestamp_unit="ms"):
                rows = rows_of(batch)
                assert len({row["partition"] for row in rows}) == 1 and len(rows) <= 70
                found[rows[0]["partition"]] += rows  # type: ignore[index]
        positions = {TopicPartition(filled, number): len(found[number]) for number in found}
        assert {where: consumer.position(where) for where in positions} == positions
        consumer.commit()
    for number, rows in found.items():
        assert rows == [expected_row(filled, 2 * at + number) for at in range(len(rows))]
    with Consumer(**settings) as consumer:
        consumer.subscribe([filled])
        rest: dict[int, list[int]] = {0: [], 1: []}
        while sum(map(len, rest.values())) < 1000 - sum(positions.values()):
            for batch in consumer.poll_arrow(20, columns=["partition", "offset"]):
                for row in rows_of(batch):
                    rest[row["partition"]].append(row["offset"])  # type: ignore[index,arg-type]
        assert rest == {number: list(range(len(found[number]), 500)) for number in found}
        committed = consumer.committed(list(positions))
        assert {where: each and each.offset for where, each in committed.items()} == positions


def test_rows_and_records_in_turns(bootstrap: str, filled: str) -> None:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", max_poll_records=33) as consumer:
        consumer.assign([(filled, 1)])
        offsets: list[object] = []
        while len(offsets) < 500:
            offsets += [record.offset for record in consumer.poll(20)]
            for batch in consumer.poll_arrow(0.1, columns=["offset"], max_rows=50):
                offsets += [row["offset"] for row in rows_of(batch)]
        assert offsets == list(range(500))


def test_columns_that_there_are_not_are_refused_at_once(bootstrap: str, new_topic: NewTopic) -> None:
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([(new_topic(1), 0)])
        with pytest.raises(ValueError, match="columns are some of key, value"):
            consumer.poll_arrow(60, columns=["valeu"])


def test_columns_within_an_event_loop(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send_many(topic, ["a", "b"])

    async def read() -> list[object]:
        async with AsyncConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            return [row["value"] for batch in await consumer.poll_arrow(20) for row in rows_of(batch)]

    assert asyncio.run(read()) == [b"a", b"b"]


def test_ranges(bootstrap: str, filled: str) -> None:
    with RangeReader(bootstrap_servers=bootstrap, max_partition_fetch_bytes=3000) as reader:
        for start, until in [(0, 500), (17, 18), (499, 500), (100, 333), (5, 5)]:
            batches = list(reader.read((filled, 1), start, until, columns=COLUMNS, max_rows=64, timestamp_unit="ms"))
            found = [row for batch in batches for row in rows_of(batch)]
            assert found == [expected_row(filled, 2 * at + 1) for at in range(start, until)]
        assert sum(len(batch) for batch in reader.read((filled, 0), 3, 498, columns=())) == 495


def test_a_range_that_is_left_early_does_not_disturb_the_next(bootstrap: str, filled: str) -> None:
    with RangeReader(bootstrap_servers=bootstrap) as reader:
        first = reader.read((filled, 0), 0, 500, max_rows=10)
        assert len(next(first)) == 10
        first.close()  # type: ignore[attr-defined]
        assert sum(len(batch) for batch in reader.read((filled, 1), 0, 500)) == 500


def test_ranges_that_the_log_has_not(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with RangeReader(bootstrap_servers=bootstrap) as reader:
        with pytest.raises(NoOffsetForPartition, match="Fetch position 7 is out of range"):
            list(reader.read((topic, 0), 7, 9))
        with pytest.raises(TimeoutError, match="position 0 of a range up to 9"):
            list(reader.read((topic, 0), 0, 9, timeout=0.3))
        with pytest.raises(TimeoutError):
            list(reader.read(("there-is-no-such-topic", 0), 0, 9, timeout=0.3))
    with pytest.raises(ConfigError, match=r"group\.id"):
        RangeReader(bootstrap_servers=bootstrap, group_id="g")


def test_ranges_end_where_markers_end_and_leave_out_what_was_aborted(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"id-{uuid.uuid4()}") as producer:
        producer.init_transactions()
        for number, end in enumerate([producer.commit_transaction, producer.abort_transaction] * 2):
            producer.begin_transaction()
            for _ in range(10):
                producer.send(topic, str(number))
            producer.flush()  # records that are not sent yet would be dropped by an abort
            end()
    for level, expected in [("read_committed", {b"0", b"2"}), ("read_uncommitted", {b"0", b"1", b"2", b"3"})]:
        with RangeReader(bootstrap_servers=bootstrap, isolation_level=level) as reader:
            rows = [row for batch in reader.read((topic, 0), 0, 44, columns=["value"]) for row in rows_of(batch)]
        assert len(rows) == 10 * len(expected) and {row["value"] for row in rows} == expected
