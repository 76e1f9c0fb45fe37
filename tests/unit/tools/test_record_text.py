"""Numbers and bytes in Java's text form, and dates in Java's patterns."""

from __future__ import annotations

import struct
from datetime import datetime

import pytest

from kafkapy.tools.java_date import JavaDateFormat
from kafkapy.tools.option import ToolError
from kafkapy.tools.record_text import JAVA_DESERIALIZERS, find_decoder, find_text_deserializer, java_fraction

PACKAGE = "org.apache.kafka.common.serialization."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (123456.789, "123456.789"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-2.5e-7, "-2.5E-7"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_have_javas_text(value, text):
    assert java_fraction(value, struct.Struct(">d")) == text


def test_floats_have_the_digits_of_floats():
    assert JAVA_DESERIALIZERS[f"{PACKAGE}FloatDeserializer"](struct.pack(">f", 0.1)) == "0.1"


def test_other_types_have_javas_text():
    assert JAVA_DESERIALIZERS[f"{PACKAGE}LongDeserializer"](b"\xff" * 8) == "-1"
    assert JAVA_DESERIALIZERS[f"{PACKAGE}BooleanDeserializer"](b"\1") == "true"
    assert JAVA_DESERIALIZERS[f"{PACKAGE}BytesDeserializer"](b"a\\\0") == "a\\x5C\\x00"
    with pytest.raises(ValueError, match="Size of data received by IntegerDeserializer is not 4"):
        JAVA_DESERIALIZERS[f"{PACKAGE}IntegerDeserializer"](b"three")


def test_decoders_are_found_by_name():
    assert find_decoder("kafka.serializer.StringDecoder")(b"a") == "a"
    assert find_decoder("org.apache.kafka.tools.api.LongDecoder")(b"\0" * 7 + b"\7") == "7"
    assert find_text_deserializer("json")(b'{"a": 1}') == "{'a': 1}"


def test_dates_have_javas_patterns():
    moment = datetime(2017, 3, 11, 15, 31, 27, 815_000)
    timestamp = int(moment.timestamp() * 1000)
    assert JavaDateFormat("yyyy-MM-dd HH:mm:ss:SSS").format(timestamp) == "2017-03-11 15:31:27:815"
    assert JavaDateFormat("d.M.yy 'at' h:mm a").format(timestamp) == "11.3.17 at 3:31 PM"
    with pytest.raises(ToolError, match="Illegal pattern character 'b'"):
        JavaDateFormat("b")
