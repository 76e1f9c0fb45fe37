"""Values of a schema registry as JSON text: those that JSON cannot represent have a reason and do not fail a query."""

from __future__ import annotations

import datetime
import decimal
import json
import random

import pytest
from google.protobuf.struct_pb2 import Struct

from kafkapy.client.schema import AvroSerializer, JsonSerializer, ProtobufSerializer, RegistryClient
from kafkapy.spark.schemas import Decoder
from tests.http_process import RegistryProcess

AVRO = json.dumps({
    "type": "record", "name": "Measurement", "fields": [
        {"name": "name", "type": "string"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
        {"name": "values", "type": {"type": "array", "items": ["null", "double", {"type": "map", "values": "double"}]}},
    ],
})  # fmt: skip
JSON = json.dumps({"type": "object", "properties": {"n": {"type": "number"}}})
NOT_FINITE = [float("nan"), float("inf"), float("-inf")]


@pytest.fixture(scope="module")
def registry(spark_bootstrap, tmp_path_factory):
    with RegistryProcess(tmp_path_factory.mktemp("registry"), spark_bootstrap) as process:
        yield RegistryClient(process.url)


def measurement(*values):
    time = datetime.datetime(2017, 5, 1, 12, tzinfo=datetime.UTC)
    return {"name": "n", "day": time.date(), "time": time, "price": decimal.Decimal("9.55"), "values": list(values)}


def test_numbers_that_json_lacks_are_texts_in_avro(registry):
    value = AvroSerializer(registry, AVRO)("avro", measurement(1.5, *NOT_FINITE, {"k": float("nan")}, None))
    text, reason = Decoder(registry, "avro").decode(value)
    assert reason is None
    found = json.loads(text)
    assert found["values"] == [1.5, "NaN", "Infinity", "-Infinity", {"k": "NaN"}, None]
    assert (found["day"], found["price"]) == ("2017-05-01", "9.55")


@pytest.mark.parametrize("text", [b'{"n": NaN}', b'{"n": 1e999}', b'{"s": "\\ud800"}', b"[" * 100_000 + b"]" * 100_000])
def test_json_that_is_none_for_spark_has_a_reason(registry, text):
    prefix = JsonSerializer(registry, JSON)("json", {"n": 1})[:5]
    found, reason = Decoder(registry, "json-schema").decode(prefix + text)
    assert found is None and reason


def test_a_number_that_protobuf_cannot_print_has_a_reason(registry):
    message = Struct()
    message.update({"n": float("inf")})
    found, reason = Decoder(registry, "protobuf").decode(ProtobufSerializer(registry, Struct)("protobuf", message))
    assert found is None and reason.startswith("the value cannot be represented in JSON: ")


@pytest.mark.parametrize("form", ["avro", "json-schema", "protobuf"])
def test_damaged_values_are_text_or_have_a_reason(registry, form):
    chance = random.Random(1)
    message = Struct()
    message.update({"a": 1, "b": [1, {"c": "x"}]})
    good = {
        "avro": AvroSerializer(registry, AVRO)("avro", measurement(1.0, {"k": 2.0})),
        "json-schema": JsonSerializer(registry, JSON)("json", {"n": 1, "s": "text"}),
        "protobuf": ProtobufSerializer(registry, Struct)("protobuf", message),
    }
    decoder = Decoder(registry, form)
    assert decoder.decode(good[form])[1] is None
    values = [value[:5] + other[5:] for value in good.values() for other in good.values()]
    for _ in range(1500):
        value = bytearray(good[form])
        kind = chance.randrange(4)
        if kind == 0:
            del value[chance.randrange(len(value)) :]
        elif kind == 1:
            value[5:] = chance.randbytes(chance.randrange(40))
        else:
            for _ in range(kind):
                value[chance.randrange(5, len(value))] = chance.randrange(256)
        values.append(bytes(value))
    for value in values:
        text, reason = decoder.decode(value)
        assert (text is None) != (reason is None), value
        if text is not None:
            json.loads(text.encode())
