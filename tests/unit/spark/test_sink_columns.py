"""The columns of a DataFrame that are written, and the rows of each topic."""

from __future__ import annotations

import pyarrow
import pytest
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kafkapy.errors import ConfigError
from kafkapy.spark.options import write_options
from kafkapy.spark.row_stream_writer import RowColumns
from kafkapy.spark.sink_columns import SinkColumns, rows_by_topic, sink_columns

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
SERVER = {"kafka.bootstrap.servers": "h:1"}


def columns(types, option=None):
    """Returns the SinkColumns of a schema with columns of these types, with or without the option `topic`."""
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
    "topic": ["a", "b", "a", "b", "b"],
    "partition": [0, 0, None, 1, 1],
    "key": [b"1", None, b"3", b"4", b"5"],
    "value": [b"v", b"w", None, b"y", b"z"],
    "headers": [None, [], None, None, [{"key": "h", "value": b"x"}]],
}


def rows(option, *names):
    types = {"partition": IntegerType, "headers": HEADERS}
    found = columns({name: types.get(name, StringType) for name in names}, option)
    batch = pyarrow.record_batch([pyarrow.array(ROWS[name]) for name in names], list(names))
    return [(topic, each.to_pydict()) for topic, each in rows_by_topic(found, batch)]


def test_rows_are_divided_by_their_topics_and_keep_their_order():
    assert rows(None, "topic", "partition", "key", "value", "headers") == [
        ("a", {"key": [b"1", b"3"], "value": [b"v", None], "partition": [0, None], "headers": [None, None]}),
        (
            "b",
            {
                "key": [None, b"4", b"5"],
                "value": [b"w", b"y", b"z"],
                "partition": [0, 1, 1],
                "headers": [[], None, [{"key": "h", "value": b"x"}]],
            },
        ),
    ]


def test_many_topics_in_turns_keep_their_order():
    topics = [f"t{number % 7}" for number in range(1000)]
    batch = pyarrow.record_batch({"topic": topics, "value": [str(number) for number in range(1000)]})
    found = dict(rows_by_topic(SinkColumns(None, 0, None, 1, None, None), batch))
    assert list(found) == topics[:7]
    for first, each in enumerate(found.values()):
        assert each.to_pydict() == {"value": [str(number) for number in range(first, 1000, 7)]}


def test_the_option_takes_precedence_over_the_column():
    whole = {"value": ROWS["value"], "partition": ROWS["partition"]}
    assert rows("t", "topic", "partition", "value") == [("t", whole)]
    assert rows("t", "value") == [("t", {"value": ROWS["value"]})]


@pytest.mark.parametrize("topics", [["a", None], [None, None]])
def test_a_row_without_a_topic_is_an_error(topics):
    batch = RowColumns([(topic, "v") for topic in topics], None)
    with pytest.raises(ValueError, match="null topic present in the data"):
        list(rows_by_topic(SinkColumns(None, 0, None, 1, None, None), batch))


def test_an_empty_batch_has_no_records():
    for option, topic_index in (("t", None), (None, 0)):
        batch = pyarrow.record_batch({"topic": pyarrow.array([], pyarrow.string()), "value": pyarrow.nulls(0)})
        assert list(rows_by_topic(SinkColumns(option, topic_index, None, 1, None, None), batch)) == []


def test_rows_one_by_one_are_columns_too():
    headers = [Row(key="h", value=bytearray(b"x")), Row(key="i", value=None)]
    batch = RowColumns([("k", bytearray(b"v"), headers, 5), (None, None, None, None)], 2)
    ((topic, found),) = rows_by_topic(SinkColumns("t", None, 0, 1, 3, 2), batch)
    pairs = [{"key": "h", "value": b"x"}, {"key": "i", "value": None}]
    assert (topic, found.to_pydict()) == (
        "t",
        {"key": ["k", None], "value": [b"v", None], "partition": [5, None], "headers": [pairs, None]},
    )
