"""Serializers and deserializers, and how a configuration names them."""

from __future__ import annotations

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
