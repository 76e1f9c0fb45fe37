"""Avro data of a hostile producer: a few bytes must neither crash the process nor make it allocate much memory."""

from __future__ import annotations

import json

import pytest

from kafkapy.client.schema import AvroDeserializer, AvroSerializer, RegistryClient
from kafkapy.client.schema.avro import parse_avro
from kafkapy.client.schema.errors import SchemaMismatch
from kafkapy.client.schema.model import RegisteredSchema, Schema

FRAME = b"\0\0\0\0\1"
EMPTY = {"type": "record", "name": "Empty", "fields": [{"name": "n", "type": "null"}]}


def linked(value_type):
    """Returns the schema of a list in which each entry contains the next one."""
    entry = {"name": "next", "type": value_type}
    return {"type": "record", "name": "Entry", "namespace": "lists", "fields": [entry]}


LINKED = linked(["null", "Entry"])
INDIRECT = linked({"type": "map", "values": {"type": "array", "items": "lists.Entry"}})
TWICE = {
    "type": "record",
    "name": "Pair",
    "fields": [
        {"name": "a", "type": {"type": "fixed", "name": "Id", "size": 2}},
        {"name": "b", "type": "Id"},
        {"name": "c", "type": {"type": "array", "items": "Id"}},
    ],
}


class Client(RegistryClient):
    """A client of a registry that has one schema, with the id 1."""

    def __init__(self, schema):
        super().__init__("http://localhost:1")
        self.only = Schema(json.dumps(schema))

    def schema(self, schema_id, *, subject="", format=""):
        return self.only

    def register(self, subject, schema, *, normalize=False):
        return RegisteredSchema(schema, 1)


@pytest.mark.parametrize("depth", [5_000, 1_000_000])
def test_data_of_endless_depth_are_an_error(depth):
    deserializer = AvroDeserializer(Client(LINKED))
    assert deserializer("t", FRAME + b"\2\2\0") == {"next": {"next": {"next": None}}}
    with pytest.raises(SchemaMismatch, match="recursion depth"):
        deserializer("t", FRAME + b"\2" * depth + b"\0")


def test_a_value_of_endless_depth_is_an_error():
    serializer = AvroSerializer(Client(LINKED), json.dumps(LINKED))
    assert serializer("t", {"next": {"next": None}}) == FRAME + b"\2\0"
    value = None
    for _ in range(5_000):
        value = {"next": value}
    with pytest.raises(SchemaMismatch, match="nested more than 500 levels deep"):
        serializer("t", value)


@pytest.mark.parametrize(("schema", "is_compiled"), [(LINKED, False), (INDIRECT, False), (EMPTY, True), (TWICE, True)])
def test_only_recursive_schemas_are_read_by_the_slower_functions(schema, is_compiled):
    client = Client(schema)
    assert (parse_avro(client, client.only).read.__module__ == "fastavro._read") is is_compiled


@pytest.mark.parametrize(
    "items",
    ["null", EMPTY, {"type": "fixed", "name": "None", "size": 0}, {"type": "record", "name": "R", "fields": []}],
)
@pytest.mark.parametrize("wrap", [lambda array: array, lambda array: ["null", array], lambda array: linked(array)])
def test_an_array_of_nothing_is_refused(items, wrap):
    client = Client(wrap({"type": "array", "items": items}))
    with pytest.raises(SchemaMismatch, match="items have no content"):
        AvroDeserializer(client)("t", FRAME + b"\xfe\xff\xff\xff\x0f\0")


@pytest.mark.parametrize("items", ["boolean", ["null"], "string", {"type": "map", "values": "null"}])
def test_arrays_of_content_are_read(items):
    assert AvroDeserializer(Client({"type": "array", "items": items}))("t", FRAME + b"\0") == []
