"""Batch queries through the data source."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kafkapy.client import Producer

COLUMNS = [
    ("key", "binary"),
    ("value", "binary"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("timestamp", "timestamp"),
    ("timestampType", "int"),
]


@pytest.fixture(scope="module")
def filled(topics):
    """Returns a topic with two partitions of 100 and 50 numbers; offset n has a timestamp n seconds after 2026
    began."""
    topic = topics.create(2)
    start_ms = 1_767_225_600_000
    with Producer(bootstrap_servers=topics.bootstrap) as producer:
        for partition, count in ((0, 100), (1, 50)):
            for number in range(count):
                producer.send(
                    topic, f"v{number}", f"k{number % 7}", partition=partition, timestamp=start_ms + 1000 * number
                )
    return topic


def tasks_of(frame):
    return frame.rdd.getNumPartitions()


def test_schema_and_rows(read, filled):
    frame = read(filled)
    assert frame.dtypes == COLUMNS
    row = frame.where("partition = 1 AND offset = 3").collect()[0]
    assert (bytes(row.key), bytes(row.value), row.topic) == (b"k3", b"v3", filled)
    assert row.timestamp.replace(tzinfo=UTC) == datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC) and row.timestampType == 0
    assert [tuple(each) for each in frame.groupBy("partition").count().orderBy("partition").collect()] == [
        (0, 100),
        (1, 50),
    ]


def test_starts_and_ends_limit_the_rows(read, filled):
    starts, ends = f'{{"{filled}": {{"0": 90, "1": -2}}}}', f'{{"{filled}": {{"0": -1, "1": 10}}}}'
    assert read(filled, startingOffsets=starts, endingOffsets=ends).count() == 20
    assert read(filled, startingTimestamp=1_767_225_645_000).count() == 55 + 5
    by_time = f'{{"{filled}": {{"0": 1767225640000, "1": 1767225640000}}}}'
    assert read(filled, endingOffsetsByTimestamp=by_time).count() == 80


def test_choosing_partitions_and_patterns(read, filled):
    assert read(filled, assign=f'{{"{filled}": [1]}}').count() == 50
    assert read(filled, subscribePattern=filled).count() == 150


def test_filters_are_pushed(read, filled):
    pushing = read(filled, pushFilters=True)
    frame = pushing.where("partition = 0 AND offset >= 95 AND timestamp >= TIMESTAMP '2026-01-01 00:01:37Z'")
    assert sorted(row.offset for row in frame.collect()) == [97, 98, 99]
    assert tasks_of(frame) == 1
    assert read(filled).where("value = X'7630'").count() == 2


def test_more_tasks_than_partitions(read, filled):
    frame = read(filled, minPartitions=6)
    assert tasks_of(frame) == 6 and frame.select("partition", "offset").distinct().count() == 150
    assert tasks_of(read(filled, maxRecordsPerPartition=40)) == 5


def test_only_the_columns_of_a_given_schema(read, filled):
    frame = read(filled, schema="offset long, value binary")
    assert frame.columns == ["offset", "value"] and frame.count() == 150
    with pytest.raises(Exception, match="no column words"):
        read(filled, schema="words string").count()


def test_headers_are_read_on_demand(read, topics):
    topic = topics.create()
    topics.fill(topic, ["with"], headers=[("a", b"1"), ("a", None)])
    topics.fill(topic, ["without"])
    frame = read(topic, includeHeaders=True)
    assert frame.dtypes[-1] == ("headers", "array<struct<key:string,value:binary>>")
    first, second = frame.orderBy("offset").collect()
    assert [(each.key, each.value and bytes(each.value)) for each in first.headers] == [("a", b"1"), ("a", None)]
    assert second.headers is None


def test_nulls_and_bytes_that_are_no_text(read, topics):
    topic = topics.create()
    topics.fill(topic, [None, b"", b"\xff\xfe\x00", "日本".encode()])
    rows = read(topic).selectExpr("value", "CAST(value AS STRING) AS text", "key").orderBy("offset").collect()
    assert [row.value and bytes(row.value) for row in rows] == [None, bytearray(), b"\xff\xfe\x00", "日本".encode()]
    assert rows[3].text == "日本" and rows[2].text.startswith("\ufffd") and rows[0].key is None


def test_an_empty_topic_has_no_rows(read, topics):
    topic = topics.create(3)
    assert read(topic).count() == 0 and read(topic).columns == [name for name, _ in COLUMNS]


def test_aborted_records_by_isolation_level(read, topics):
    topic = topics.create()
    with Producer(bootstrap_servers=topics.bootstrap, transactional_id=f"of-{topic}") as producer:
        producer.init_transactions()
        for word, ends in (("kept", producer.commit_transaction), ("taken back", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(topic, word).result(30)
            ends()
    assert read(topic).count() == 2
    assert [bytes(row.value) for row in read(topic, kafka_isolation_level="read_committed").collect()] == [b"kept"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffset": "earliest"}, "did you mean 'startingOffsets'"),
        ({"kafka_fetch_max_byte": "1"}, "did you mean 'kafka.fetch.max.bytes'"),
        ({"startingOffsets": "latest"}, "starting offset can't be latest"),
    ],
)
def test_invalid_options_are_errors(read, filled, options, words):
    with pytest.raises(Exception, match=words):
        read(filled, **options).count()


def test_a_missing_topic_is_an_error(read):
    with pytest.raises(Exception, match="does not host this topic-partition"):
        read("nobody-made-it").count()


def test_spark_finds_the_format_by_itself(spark, topics, filled):
    fresh = spark.newSession()  # a session in which `register` was not called
    reader = fresh.read.format("kafkapy").option("kafka.bootstrap.servers", topics.bootstrap)
    assert reader.option("subscribe", filled).load().where("offset < 50").count() == 100
