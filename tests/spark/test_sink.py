"""Writing to topics, in batches and streams, with and without transactions."""

from __future__ import annotations

import json
import uuid
from collections import Counter

import pytest
from pyspark.errors import PySparkException

from kafkapy.client import Consumer
from kafkapy.client.prepared_transaction import PreparedTransaction
from kafkapy.spark.options import write_options
from kafkapy.spark.sink_commit import LedgerEntry, SinkLedger


def to(frame, topics, **options):
    writer = frame.write if not frame.isStreaming else frame.writeStream
    writer = writer.format("kafkapy").option("kafka.bootstrap.servers", topics.bootstrap)
    for name, value in options.items():
        writer = writer.option(name.replace("kafka_", "kafka.").replace("_id", ".id"), value)
    return writer


def test_all_columns_are_written(spark, read, topics):
    first, second = topics.create(2), topics.create(2)
    rows = [(first, 1, "k", b"v", [("h", b"1")]), (second, 0, None, None, None), (first, 0, "k", b"w", [])]
    schema = "topic string, partition int, key string, value binary, headers array<struct<key:string,value:binary>>"
    to(spark.createDataFrame(rows, schema), topics).mode("append").save()
    found = read("", subscribe=f"{first},{second}", includeHeaders=True).collect()
    written = {
        (row.topic, row.partition, row.key and bytes(row.key), row.value and bytes(row.value), bool(row.headers))
        for row in found
    }
    assert written == {
        (first, 1, b"k", b"v", True),
        (second, 0, None, None, False),
        (first, 0, b"k", b"w", False),
    }


def test_the_option_topic_goes_first_and_keys_choose_partitions(spark, read, topics):
    topic = topics.create(4)
    frame = spark.range(200).selectExpr(
        "'other' AS topic", "CAST(id % 20 AS STRING) AS key", "CAST(id AS STRING) value"
    )
    to(frame, topics, topic=topic).mode("append").save()
    rows = read(topic).collect()
    assert sorted(int(row.value) for row in rows) == list(range(200))
    places = {bytes(row.key): row.partition for row in rows}
    assert all(places[bytes(row.key)] == row.partition for row in rows) and len(set(places.values())) > 1


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("id AS value", "value attribute unsupported type bigint"),
        ("'x' AS key", "Required attribute 'value' not found"),
        ("'x' AS value", "topic option required"),
    ],
)
def test_a_schema_that_cannot_be_written_is_refused(spark, topics, columns, words):
    with pytest.raises(Exception, match=words):
        to(spark.range(1).selectExpr(columns), topics).mode("append").save()


def test_a_null_topic_is_an_error(spark, topics):
    frame = spark.range(1).selectExpr("CAST(NULL AS STRING) AS topic", "'x' AS value")
    with pytest.raises(Exception, match="null topic present"):
        to(frame, topics).mode("append").save()


def test_one_record_that_is_too_large_among_others_is_an_error(spark, read, topics):
    """The broker refuses the batch, which is then sent in parts; only the part with the large record fails."""
    topic = topics.create(max_message_bytes="5000")
    frame = spark.range(0, 20, 1, 1).selectExpr("IF(id = 7, repeat('x', 9000), CAST(id AS STRING)) AS value")
    with pytest.raises(PySparkException, match="MESSAGE_TOO_LARGE"):
        to(frame, topics, topic=topic).mode("append").save()
    assert [int(row.value) for row in read(topic).collect()] == [*range(7), *range(8, 20)]


def test_a_batch_in_transactions_is_all_or_nothing(spark, read, topics):
    topic = topics.create(2)
    good = spark.range(0, 40, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    to(good, topics, topic=topic, kafka_transactional_id=f"id-{topic}").mode("append").save()
    bad = spark.range(0, 40, 1, 2).selectExpr(
        "IF(id = 39, raise_error('the row 39 is refused'), CAST(id AS STRING)) AS value"
    )
    with pytest.raises(PySparkException, match="the row 39 is refused"):
        to(bad, topics, topic=topic, kafka_transactional_id=f"id-{topic}").mode("append").save()
    committed = read(topic, kafka_isolation_level="read_committed")
    assert sorted(int(row.value) for row in committed.collect()) == list(range(40))


def stream_once(frame, topics, checkpoint, **options):
    query = (
        to(frame, topics, **options).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    )
    assert query.awaitTermination(100)


def values(topics, topic):
    """Counts the committed values of a topic."""
    settings = {"bootstrap_servers": topics.bootstrap, "isolation_level": "read_committed"}
    with Consumer(**settings, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        (end,) = consumer.end_offsets([(topic, 0)]).values()
        found = Counter()
        while consumer.position((topic, 0)) < end:
            found.update(int(record.value) for record in consumer.poll(5))
        return found


def test_a_stream_is_written_once(read_stream, topics, tmp_path):
    source, target = topics.create(2), topics.create()
    topics.fill(source, map(str, range(20)))
    topics.fill(source, map(str, range(20, 30)), partition=1)
    frame = read_stream(source, startingOffsets="earliest", maxOffsetsPerTrigger=20).select("value")
    stream_once(frame, topics, tmp_path, topic=target, kafka_transactional_id=f"id-{target}")
    assert values(topics, target) == Counter(range(30))


def test_a_batch_that_spark_repeats_counts_once(read_stream, topics, tmp_path):
    """The driver dies after its last commit and before Spark has recorded it: the checkpoint lacks the batch."""
    source, target = topics.create(), topics.create()
    topics.fill(source, map(str, range(10)))
    frame = read_stream(source, startingOffsets="earliest").select("value")
    stream_once(frame, topics, tmp_path, topic=target, kafka_transactional_id=f"id-{target}")
    (tmp_path / "commits" / "0").unlink()
    (tmp_path / "commits" / ".0.crc").unlink()
    stream_once(frame, topics, tmp_path, topic=target, kafka_transactional_id=f"id-{target}")
    assert values(topics, target) == Counter(range(10))


def test_a_decided_batch_is_committed_by_the_next_driver(read_stream, topics, tmp_path):
    """The driver dies after it has recorded the decision and before it has committed all transactions."""
    from kafkapy.client import Producer

    source, target = topics.create(), topics.create()
    topics.fill(source, map(str, range(10)))
    query_id = str(uuid.uuid4())
    (tmp_path / "metadata").write_text(json.dumps({"id": query_id}))  # as Spark stores it in a checkpoint
    name = f"id-{target}-{query_id}"
    with Producer(bootstrap_servers=topics.bootstrap, transactional_id=f"{name}-0") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_many(target, map(str, range(10)))
        prepared = producer.prepare_transaction()
    assert isinstance(prepared, PreparedTransaction)
    options = write_options(
        {"kafka.bootstrap.servers": topics.bootstrap, "topic": target, "kafka.transactional.id": name}
    )
    with SinkLedger(options) as ledger:
        ledger.write(LedgerEntry(0, [prepared]))
    frame = read_stream(source, startingOffsets="earliest").select("value")
    stream_once(frame, topics, tmp_path, topic=target, kafka_transactional_id=f"id-{target}")
    assert values(topics, target) == Counter(range(10))
    with SinkLedger(options) as ledger:
        assert ledger.read() == LedgerEntry(0, [])


def test_a_new_checkpoint_begins_anew_with_the_same_id(read_stream, topics, tmp_path):
    """Both checkpoints have a batch 0, and both batches must be written."""
    source, target = topics.create(), topics.create()
    topics.fill(source, map(str, range(9)))
    for checkpoint, limit in (("one", 9), ("two", 5)):
        frame = read_stream(source, startingOffsets="earliest", maxOffsetsPerTrigger=limit).select("value")
        stream_once(frame, topics, tmp_path / checkpoint, topic=target, kafka_transactional_id=f"id-{target}")
    assert values(topics, target) == Counter(dict.fromkeys(range(9), 2))


def test_the_first_rows_make_the_topic(read_stream, topics, tmp_path):
    """The first batches have no rows; they are not recorded, because the topic does not exist yet."""
    source = topics.create()
    target = f"{source}-made-by-the-sink"
    topics.fill(source, map(str, range(9)))
    frame = read_stream(source, startingOffsets="earliest", maxOffsetsPerTrigger=3).select("value")
    stream_once(frame.where("value > '6'"), topics, tmp_path, topic=target, kafka_transactional_id=f"id-{target}")
    assert values(topics, target) == Counter((7, 8))


def test_a_checkpoint_that_was_reset_is_refused(read_stream, topics, tmp_path):
    source, target = topics.create(), topics.create()
    topics.fill(source, map(str, range(9)))
    frame = read_stream(source, startingOffsets="earliest", maxOffsetsPerTrigger=5).select("value")
    stream_once(frame, topics, tmp_path, topic=target, kafka_transactional_id=f"id-{target}")
    for path in ("offsets/1", "offsets/.1.crc", "commits/0", "commits/.0.crc", "commits/1", "commits/.1.crc"):
        (tmp_path / path).unlink()
    with pytest.raises(Exception, match="its checkpoint was reset"):
        stream_once(frame, topics, tmp_path, topic=target, kafka_transactional_id=f"id-{target}")
    assert values(topics, target) == Counter(range(9))
