"""Avro schemas: what is refused, the canonical text, and the rules of compatibility."""

from __future__ import annotations

import json

import pytest

from kafkapy.registry.errors import InvalidSchema
from kafkapy.registry.schemas.avro import DEEPEST, AvroSchema
from kafkapy.registry.schemas.avro_compatibility import differences


def record(*fields, name="R", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name, type="int", **more):
    return {"name": name, "type": type, **more}


def enum(*symbols, **more):
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def parsed(value):
    return AvroSchema(json.dumps(value))


def kinds(reader, writer):
    return [each.kind for each in differences(parsed(reader), parsed(writer))]


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("long", "int"),
        ("double", "float"),
        ("double", "long"),
        ("string", "bytes"),
        ("bytes", "string"),
        (["null", "int"], "int"),
        (["null", "long"], ["null", "int"]),
        ("int", ["int"]),
        (record(field("a"), field("b", default=1)), record(field("a"))),
        (record(field("a")), record(field("a"), field("b"))),
        (record(field("new", aliases=["old"])), record(field("old"))),
        (record(name="New", aliases=["R"]), record()),
        (record(namespace="a"), record(namespace="b")),
        (enum("A", "B"), enum("A")),
        (enum("A", default="A"), enum("A", "B")),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
        ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}),
        (record(field("next", ["null", "R"])), record(field("next", ["null", "R"]))),
    ],
)
def test_the_reader_can_read(reader, writer):
    assert kinds(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "kind"),
    [
        ("int", "long", "TYPE_MISMATCH"),
        ("float", "double", "TYPE_MISMATCH"),
        ("int", "string", "TYPE_MISMATCH"),
        ("int", ["null", "int"], "TYPE_MISMATCH"),
        (["null", "int"], ["null", "string"], "MISSING_UNION_BRANCH"),
        (["null", "int"], "string", "MISSING_UNION_BRANCH"),
        (record(field("a"), field("b")), record(field("a")), "READER_FIELD_MISSING_DEFAULT_VALUE"),
        (record(name="New"), record(), "NAME_MISMATCH"),
        (enum("A"), enum("A", "B"), "MISSING_ENUM_SYMBOLS"),
        (
            {"type": "fixed", "name": "F", "size": 4},
            {"type": "fixed", "name": "F", "size": 8},
            "FIXED_SIZE_MISMATCH",
        ),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}, "TYPE_MISMATCH"),
        ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, "TYPE_MISMATCH"),
    ],
)
def test_the_reader_cannot_read(reader, writer, kind):
    assert kinds(reader, writer) == [kind]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("unknown", "Undefined name"),
        (["int", "int"], "Duplicate in union"),
        (["int", ["string"]], "Nested union"),
        ({"type": "record", "name": "R"}, "no fields"),
        (record(field("a"), field("a")), "Duplicate field"),
        (record({"name": "a"}), "No field type"),
        (record(field("a", "R2")), "Undefined name"),
        (record(field("1a")), "character in name"),
        (record(field("a", default="text")), "Invalid default"),
        (record(field("a", ["null", "int"], default="text")), "Invalid default"),
        (enum("A", "A"), "Duplicate enum symbol"),
        (enum("A", default="B"), "not in the enum symbol set"),
        ({"type": "fixed", "name": "F", "size": -1}, "size"),
        ({"type": "array"}, "without items"),
        ({"name": "no type"}, "no type"),
        ({"type": "record", "name": "int", "fields": []}, "named after primitives"),
        (7, "is not a type"),
    ],
)
def test_an_invalid_schema_is_refused(schema, reason):
    with pytest.raises(InvalidSchema, match=reason):
        parsed(schema)


def test_a_text_that_is_not_json_is_refused():
    with pytest.raises(InvalidSchema, match="not JSON"):
        AvroSchema('{"type": ')


def test_a_schema_that_is_nested_too_deeply_is_refused():
    schema = "int"
    for _ in range(DEEPEST + 1):
        schema = {"type": "array", "items": schema}
    with pytest.raises(InvalidSchema, match="deeper"):
        parsed(schema)
    with pytest.raises(InvalidSchema):
        AvroSchema("[" * 100_000)


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ('{"type": "string"}', '"string"'),
        ("string", '"string"'),
        (
            '{"fields": [{"type": {"type": "int"}, "name": "a"}], "namespace": "n", "name": "R", "type": "record"}',
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}',
        ),
        (
            '{"type": "record", "name": "n.R", "fields": [{"name": "e", "order": "ascending", '
            '"type": {"type": "enum", "name": "n.E", "symbols": ["A"]}}, {"name": "f", "type": "n.E"}]}',
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":{"type":"enum","name":"E",'
            '"symbols":["A"]}},{"name":"f","type":"E"}]}',
        ),
        (
            '{"logicalType": "date", "type": "int"}',
            '{"type":"int","logicalType":"date"}',
        ),
    ],
)
def test_the_canonical_text_is_that_of_avros_java_library(given, canonical):
    assert AvroSchema(given).canonical == canonical


def test_a_schema_uses_the_types_of_its_references():
    part = json.dumps(record(field("n"), name="Part"))
    whole = AvroSchema(json.dumps(record(field("part", "Part"))), [part])
    assert whole.canonical == '{"type":"record","name":"R","fields":[{"name":"part","type":"Part"}]}'
