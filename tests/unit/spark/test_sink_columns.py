"""The columns of a DataFrame that are written, and the runs of rows that go to one partition."""

from __future__ import annotations

import pyarrow
import pytest
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kafkapy.errors import ConfigError
from kafkapy.spark.options import write_options
from kafkapy.spark.row_stream_writer import RowColumns
from kafkapy.spark.sink_columns import SinkColumns, SinkRecords, sink_columns, sink_records

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
SERVER = {"kafka.bootstrap.servers": "h:1"}


def columns(types, option=None):
    """The columns of a schema, by the types of its columns, with or without the option `topic`."""
    fields = [StructField(name, kind if isinstance(kind, ArrayType) else kind()) for name, kind in types.items()]
    return sink_columns(StructType(fields), write_options({**SERVER, **({"topic": option} if option else {})}))


def test_columns_are_found_by_name_and_others_are_ignored():
    types = {"other": LongType, "headers": HEADERS, "partition": IntegerType, "value": BinaryType, "key": StringType}
    found = columns({**types, "topic": StringType})
    assert found == SinkColumns(
        topic=None, topic_index=5, key_index=4, value_index=3, partition_index=2, headers_index=1
    )
    assert columns({"value": StringType}, "t") == SinkColumns("t", None, None, 0, None, None)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"value": LongType}, "value attribute unsupported type bigint. value must be a binary or string"),
        ({"value": StringType, "key": IntegerType}, "key attribute unsupported type int"),
        ({"value": StringType, "partition": LongType}, "partition attribute unsupported type bigint"),
        ({"value": StringType, "topic": BinaryType}, "topic attribute unsupported type binary"),
        ({"value": StringType, "headers": StringType}, "headers attribute unsupported type string"),
        ({"key": StringType, "topic": StringType}, "Required attribute 'value' not found"),
        ({"value": StringType}, "topic option required when no 'topic' attribute is present"),
    ],
)
def test_a_schema_that_cannot_be_written_is_refused(types, message):
    with pytest.raises(ConfigError, match=message):
        columns(types)


ROWS = {
    "topic": ["a", "a", "b", "b", "b"],
    "partition": [0, 0, 0, 1, 1],
    "key": [b"1", None, b"3", b"4", b"5"],
    "value": [b"v", b"w", None, b"y", b"z"],
    "headers": [None, [], None, None, [{"key": "h", "value": b"x"}]],
}


def runs(option, *names):
    types = {"partition": IntegerType, "headers": HEADERS}
    found = columns({name: types.get(name, StringType) for name in names}, option)
    return list(sink_records(found, pyarrow.record_batch([pyarrow.array(ROWS[name]) for name in names], list(names))))


def test_rows_are_divided_where_topic_or_partition_changes():
    found = runs(None, "topic", "partition", "key", "value", "headers")
    assert found == [
        SinkRecords("a", 0, [b"v", b"w"], [b"1", None], [None, []]),
        SinkRecords("b", 0, [None], [b"3"], [None]),
        SinkRecords("b", 1, [b"y", b"z"], [b"4", b"5"], [None, [{"key": "h", "value": b"x"}]]),
    ]
    assert [(each.topic, each.partition, len(each.values)) for each in runs(None, "topic", "value")] == [
        ("a", None, 2),
        ("b", None, 3),
    ]


def test_the_option_takes_precedence_over_the_column():
    assert [(each.topic, each.partition, len(each.values)) for each in runs("t", "topic", "partition", "value")] == [
        ("t", 0, 3),
        ("t", 1, 2),
    ]
    assert runs("t", "value") == [SinkRecords("t", None, ROWS["value"], None, None)]


def test_a_row_without_a_topic_is_an_error():
    rows = sink_records(SinkColumns(None, 0, None, 1, None, None), RowColumns([("a", "v"), (None, "w")]))
    assert next(rows).topic == "a"
    with pytest.raises(ValueError, match="null topic present in the data"):
        next(rows)


def test_an_empty_batch_has_no_records():
    assert list(sink_records(SinkColumns("t", None, None, 0, None, None), RowColumns([]))) == []


def test_rows_one_by_one_are_columns_too():
    rows = RowColumns([("k", "v"), ("l", "w")])
    assert rows.num_rows == 2 and rows.column(1).to_pylist() == ["v", "w"]
    assert list(sink_records(SinkColumns("t", None, 0, 1, None, None), rows)) == [
        SinkRecords("t", None, ["v", "w"], ["k", "l"], None)
    ]
