"""JSON Schemas: what is refused, and which changes are compatible."""

from __future__ import annotations

import json

import pytest

from kafkapy.registry.errors import InvalidSchema
from kafkapy.registry.schemas.json_compatibility import differences
from kafkapy.registry.schemas.json_schema import JsonSchema

CLOSED = {"additionalProperties": False}


def thing(*required, properties=None, **more):
    schema = {"type": "object", "properties": properties or {"a": {"type": "string"}}, **more}
    return {**schema, "required": list(required)} if required else schema


def kinds(reader, writer):
    return [each.kind for each in differences(JsonSchema(json.dumps(reader)), JsonSchema(json.dumps(writer)))]


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (True, {"type": "string"}),
        ({}, {"type": "string"}),
        ({"type": "string", "title": "new"}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"type": "number"}, {"type": "integer"}),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 5}),
        ({"type": "string"}, {"type": "string", "maxLength": 5}),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}),
        ({"enum": ["a", "b"]}, {"const": "a"}),
        ({"multipleOf": 2}, {"multipleOf": 4}),
        (thing(), thing("a")),
        (thing(properties={"a": {"type": "string"}, "b": True}), thing()),
        (thing(properties={"a": {"type": "string"}, "b": {"type": "string"}}, **CLOSED), thing(**CLOSED)),
        (
            thing("b", properties={"a": {"type": "string"}, "b": {"type": "string", "default": "x"}}, **CLOSED),
            thing(**CLOSED),
        ),
        (thing(), thing(**CLOSED)),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "string"}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"oneOf": [{"type": "integer"}]}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"allOf": [{"type": "string"}]}, {"type": "string", "maxLength": 3}),
        ({"type": "array", "items": {"type": "number"}}, {"type": "array", "items": {"type": "integer"}}),
        (
            {
                "$ref": "#/definitions/n",
                "definitions": {"n": {"type": "object", "properties": {"next": {"$ref": "#"}}}},
            },
            {
                "$ref": "#/definitions/n",
                "definitions": {"n": {"type": "object", "properties": {"next": {"$ref": "#"}}}},
            },
        ),
    ],
)
def test_the_reader_accepts_all_documents_of_the_writer(reader, writer):
    assert kinds(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "kind"),
    [
        ({"type": "string"}, True, "TYPE_NARROWED"),
        (False, {"type": "string"}, "TYPE_NARROWED"),
        ({"type": "string"}, {"type": ["string", "null"]}, "TYPE_NARROWED"),
        ({"type": "integer"}, {"type": "string"}, "TYPE_CHANGED"),
        ({"type": "integer", "maximum": 5}, {"type": "integer", "maximum": 9}, "MAXIMUM_DECREASED"),
        ({"type": "integer", "minimum": 5}, {"type": "integer"}, "MINIMUM_ADDED"),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer"}, "EXCLUSIVE_MINIMUM_ADDED"),
        ({"type": "string", "pattern": "a"}, {"type": "string"}, "PATTERN_ADDED"),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, "ENUM_ARRAY_NARROWED"),
        (thing("a"), thing(), "REQUIRED_ATTRIBUTE_ADDED"),
        (
            thing(properties={"a": {"type": "string"}, "b": {"type": "string"}}),
            thing(),
            "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        ),
        (
            thing(properties={"b": {"type": "string"}}, **CLOSED),
            thing(properties={"a": {"type": "string"}, "b": {"type": "string"}}, **CLOSED),
            "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        ),
        (thing(**CLOSED), thing(), "ADDITIONAL_PROPERTIES_REMOVED"),
        ({"oneOf": [{"type": "string"}]}, {"oneOf": [{"type": "string"}, {"type": "null"}]}, "SUM_TYPE_NARROWED"),
        ({"allOf": [{"type": "string", "maxLength": 3}]}, {"type": "string"}, "PRODUCT_TYPE_EXTENDED"),
        ({"not": {"type": "string"}}, {"type": "integer"}, "NOT_TYPE_EXTENDED"),
        ({"type": "array", "uniqueItems": True}, {"type": "array"}, "UNIQUE_ITEMS_ADDED"),
        (
            {"type": "array", "items": {"type": "integer"}},
            {"type": "array", "items": {"type": "string"}},
            "TYPE_CHANGED",
        ),
        ({"type": "object", "$ref": "#/definitions/none"}, {"type": "object"}, "REFERENCE_NOT_FOUND"),
    ],
)
def test_the_reader_may_refuse_a_document_of_the_writer(reader, writer, kind):
    assert kind in kinds(reader, writer)


@pytest.mark.parametrize("text", ["", "[]", "7", '{"type": "text"}', '{"properties": []}', "[" * 100_000])
def test_an_invalid_schema_is_refused(text):
    with pytest.raises(InvalidSchema):
        JsonSchema(text)


def test_a_hostile_pattern_takes_no_time():
    names = {"a" * 60 + "!": {"type": "string"}}
    reader = thing(properties=names, patternProperties={"^(a+)+$": {"type": "string"}})
    assert kinds(reader, reader) == []
