"""Parsing lines into records."""

from __future__ import annotations

import io

import pytest

from kafkapy.tools.line_reader import InputRecord, LineReader, load_reader
from kafkapy.tools.option import ToolError


def records(text: bytes, **properties: str) -> list[InputRecord]:
    reader = LineReader()
    reader.configure({"topic": "t", **{name.replace("_", "."): value for name, value in properties.items()}})
    return list(reader.read_records(io.BytesIO(text)))


def test_lines_may_have_any_line_end():
    assert [each.value for each in records(b"a\nb\r\n\nc\rd")] == [b"a", b"b", b"", b"c", b"d"]


def test_invalid_utf_8_is_replaced():
    assert records(b"\xff\n")[0].value == "\ufffd".encode()


def test_keys_headers_and_nulls_are_parsed():
    found = records(
        b"h:1,g:NULL\tNULL\tv\tw\nNULL\tk\tNULL\n", parse_key="true", parse_headers=" TRUE ", null_marker="NULL"
    )
    assert found == [
        InputRecord("t", None, b"v\tw", (("h", b"1"), ("g", None))),
        InputRecord("t", b"k", None, ()),
    ]


def test_an_unknown_property_is_reported_with_the_nearest_one(caplog: pytest.LogCaptureFixture):
    assert records(b"a\t1\n", parse_keyy="true") == [InputRecord("t", None, b"a\t1")]
    assert caplog.messages == ["The property parse.keyy is unknown and is ignored; did you mean parse.key?"]


def test_a_line_without_a_separator_is_an_error():
    with pytest.raises(ToolError, match="No key separator found on line number 2: 'b'"):
        records(b"a\t1\nb\n", parse_key="true")
    assert records(b"b\n", parse_key="true", ignore_error="true") == [InputRecord("t", None, b"b")]
    with pytest.raises(ToolError, match="No header key separator found in pair 'x' on line number 1"):
        records(b"x\tv\n", parse_headers="true")


def test_the_separator_of_headers_is_an_expression():
    found = records(b"a:1;;b:2;|v\n", parse_headers="true", headers_separator=";+", headers_delimiter="|")
    assert found[0].headers == (("a", b"1"), ("b", b"2"))


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"headers_separator": "\t"}, "headers.delimiter and headers.separator may not be equal"),
        ({"headers_separator": ":"}, "headers.separator and headers.key.separator may not be equal"),
        ({"null_marker": "\t"}, "null.marker and key.separator may not be equal"),
    ],
)
def test_equal_separators_are_refused(properties, message):
    with pytest.raises(ToolError, match=message):
        records(b"", **properties)


def test_a_python_class_may_be_the_reader():
    assert type(load_reader("kafkapy.tools.line_reader:LineReader")) is LineReader
    with pytest.raises(ToolError, match="write a Python class as module:name"):
        load_reader("org.example.MyReader")
