"""The formatters of console-consumer."""

from __future__ import annotations

import json

import pytest

from kafkapy.protocol.coordinator_record import Coordinator
from kafkapy.tools.message_formatter import FORMATTERS, CoordinatorFormatter, JsonFormatter, make_formatter
from kafkapy.tools.option import ToolError, UsageError
from tests.unit.tools.simulated_client import Record

PACKAGE = "org.apache.kafka.tools.consumer."
ALL = {f"print.{part}": "true" for part in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key")}
RECORD = Record(b"value", b"key", 7, 2, headers=(("a", b"1"), ("b", None)))
# A commit of the offset 5: group g, topic t, partition 0; version 1 of the key.
OFFSET_KEY = b"\0\1\0\1g\0\1t\0\0\0\0"


def shown(record: Record, **properties: str) -> bytes:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return make_formatter(PACKAGE + "DefaultMessageFormatter", named).format(record)


def test_only_the_value_is_printed_by_default():
    assert shown(RECORD) == b"value\n"
    assert shown(Record(None)) == b"null\n"
    assert shown(RECORD, print_value="false") == b""


def test_all_parts_in_kafkas_order():
    formatter = make_formatter(PACKAGE + "DefaultMessageFormatter", ALL)
    assert formatter.format(RECORD).split(b"\t") == [
        b"CreateTime:1700000000000",
        b"Partition:2",
        b"Offset:7",
        b"Delivery:NOT_PRESENT",
        b"Epoch:NOT_PRESENT",
        b"a:1,b:null",
        b"key",
        b"value\n",
    ]


def test_separators_and_the_literal_for_null():
    text = shown(
        Record(b"v", None, headers=(("a", None), ("b", b"2"))),
        print_key=" TRUE ",
        print_headers="true",
        headers_separator="|",
        key_separator="; ",
        line_separator=".",
        null_literal="-",
    )
    assert text == b"a:-|b:2; -; v."


def test_records_without_headers_or_timestamp():
    assert shown(Record(b"v", timestamp=-1), print_timestamp="true", print_headers="true") == (
        b"NO_TIMESTAMP\tNO_HEADERS\tv\n"
    )
    assert shown(Record(b"v", timestamp=5, timestamp_type=1), print_timestamp="true") == b"LogAppendTime:5\tv\n"


def test_an_unknown_property_is_reported_with_the_nearest_one(caplog: pytest.LogCaptureFixture):
    assert shown(RECORD, print_keyy="true") == b"value\n"
    assert caplog.messages == ["The property print.keyy is unknown and is ignored; did you mean print.key?"]
    caplog.clear()
    shown(RECORD, key_deserializer_encoding="UTF-8", xyz="1")
    assert caplog.messages == ["The property xyz is unknown and is ignored."]


def test_an_unknown_deserializer_is_logged_and_bytes_are_printed(caplog: pytest.LogCaptureFixture):
    assert shown(RECORD, value_deserializer="org.example.Mine") == b"value\n"
    assert "Unable to instantiate a deserializer from org.example.Mine" in caplog.text


@pytest.mark.parametrize("name", FORMATTERS)
def test_every_formatter_prints_nothing_for_a_record_without_a_key_or_its_value(name: str):
    text = make_formatter(name, {}).format(Record(b"v"))
    assert text == (b"v\n" if name.endswith(("DefaultMessageFormatter", "LoggingMessageFormatter")) else b"")


def test_old_class_names_are_accepted_and_unknown_ones_are_not():
    old = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
    assert isinstance(make_formatter(old, {}), CoordinatorFormatter)
    with pytest.raises(UsageError, match=r"org\.example\.Mine"):
        make_formatter("org.example.Mine", {})


def test_coordinator_records_are_json_of_their_types_only():
    offsets = CoordinatorFormatter(Coordinator.GROUP, frozenset((0, 1)))
    assert json.loads(offsets.format(Record(None, OFFSET_KEY))) == {
        "key": {"type": 1, "data": {"group": "g", "topic": "t", "partition": 0}},
        "value": None,
    }
    assert CoordinatorFormatter(Coordinator.GROUP, frozenset((2,))).format(Record(None, OFFSET_KEY)) == b""
    assert offsets.format(Record(b"v", b"\0\x63")) == b"", "an unknown type"
    with pytest.raises(ToolError, match="Could not read record at offset 3 due to"):
        offsets.format(Record(b"\0\3\0", OFFSET_KEY, 3))


def test_json_has_all_fields_and_base64_for_bytes():
    record = Record(b"\xff", None, 7, 2, headers=(("h", b"text"), ("g", None)))
    assert json.loads(JsonFormatter().format(record)) == {
        "topic": "t",
        "partition": 2,
        "offset": 7,
        "timestamp": 1_700_000_000_000,
        "timestampType": "CreateTime",
        "headers": [["h", "text"], ["g", None]],
        "key": None,
        "value": {"base64": "/w=="},
    }


def test_a_record_without_a_timestamp_has_no_type_of_one():
    found = json.loads(JsonFormatter().format(Record(b"v", timestamp=-1, timestamp_type=-1)))
    assert (found["timestamp"], found["timestampType"]) == (-1, "NoTimestampType")


def test_the_delivery_count_of_a_share_group_is_shown():
    formatter = make_formatter("org.apache.kafka.tools.consumer.DefaultMessageFormatter", {"print.delivery": "true"})
    assert formatter.format(Record(b"v", delivery_count=3)) == b"Delivery:3\tv\n"
