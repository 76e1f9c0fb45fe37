"""Serializers and deserializers, and how a configuration names them."""

from __future__ import annotations

import uuid

import pytest

from kafkapy.client.serialization import (
    DESERIALIZERS,
    SERIALIZERS,
    find_deserializer,
    find_serializer,
    load_object,
    serialize_bytes,
)
from kafkapy.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("text", "é", "é".encode()),
        ("json", {"a": [1, None], "é": "x"}, '{"a":[1,null],"é":"x"}'.encode()),
        ("msgpack", {"a": 1}, b"\x81\xa1a\x01"),
    ],
)
def test_a_value_is_serialized_and_back(name, value, data):
    serialize, deserialize = find_serializer("k", name), find_deserializer("k", name)
    assert serialize("t", value) == data
    assert deserialize("t", data) == value
    assert serialize("t", None) is None
    assert deserialize("t", None) is None


def test_bytes_need_no_serializer():
    assert find_serializer("k", "bytes") is None and find_deserializer("k", None) is None
    assert serialize_bytes("t", b"a") == b"a"


def test_the_names_of_java_are_known():
    package = "org.apache.kafka.common.serialization."
    assert SERIALIZERS[f"{package}StringSerializer"] is SERIALIZERS["text"]
    assert DESERIALIZERS[f"{package}StringDeserializer"] is DESERIALIZERS["text"]
    assert SERIALIZERS[f"{package}ByteArraySerializer"] is None
    assert DESERIALIZERS[f"{package}ByteArrayDeserializer"] is None


def test_a_callable_and_an_object_of_a_module_may_be_named():
    assert find_serializer("k", len) is len
    assert find_serializer("k", "json:dumps").__name__ == "dumps"


@pytest.mark.parametrize("name", ["json:absent", "absent_module:x", "", "nocolon"])
def test_an_object_that_does_not_exist_is_refused_with_the_key(name):
    with pytest.raises(ConfigError, match=f"Invalid value {name} for configuration key.serializer: not found"):
        load_object("key.serializer", name)


JAVA = "org.apache.kafka.common.serialization."


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("Short", -2, "fffe"),
        ("Integer", 1, "00000001"),
        ("Long", -1, "ffffffffffffffff"),
        ("Float", 1.5, "3fc00000"),
        ("Double", -0.25, "bfd0000000000000"),
        ("Boolean", True, "01"),
        ("UUID", uuid.UUID(int=1), b"00000000-0000-0000-0000-000000000001".hex()),
        ("ByteBuffer", b"raw", b"raw".hex()),
        ("Bytes", b"raw", b"raw".hex()),
        ("String", "text", b"text".hex()),
        ("Void", None, None),
    ],
)
def test_the_formats_of_javas_classes(name, value, data):
    encoded = None if data is None else bytes.fromhex(data)
    serialize = find_serializer("key.serializer", f"{JAVA}{name}Serializer") or (lambda topic, value: value)
    deserialize = find_deserializer("key.deserializer", f"{JAVA}{name}Deserializer") or (lambda topic, data: data)
    assert serialize("t", value) == encoded
    assert deserialize("t", encoded) == value
    assert serialize("t", None) is None
    assert deserialize("t", None) is None


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("Integer", b"123", "Size of data received by IntegerDeserializer is not 4"),
        ("Long", b"1234", "Size of data received by LongDeserializer is not 8"),
        ("Boolean", b"\x02", "Unexpected byte received by BooleanDeserializer: 2"),
        ("Boolean", b"12", "Size of data received by BooleanDeserializer is not 1"),
        ("UUID", b"no uuid", "badly formed"),
        ("Void", b"x", "Data should be null for a VoidDeserializer."),
    ],
)
def test_data_that_javas_deserializer_refuses(name, data, text):
    with pytest.raises(ValueError, match=text):
        find_deserializer("value.deserializer", f"{JAVA}{name}Deserializer")("t", data)


def test_values_that_javas_serializer_refuses():
    for name, value in (("Short", 1 << 15), ("Integer", "1"), ("Void", 1)):
        with pytest.raises(ValueError, match=f"{name}Serializer"):
            find_serializer("value.serializer", f"{JAVA}{name}Serializer")("t", value)
