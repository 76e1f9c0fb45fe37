"""Parses schemas of every type with the schemas that they refer to, and compares them."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.client.schema.model import (
    AVRO,
    DEEPEST_REFERENCE,
    JSON,
    MOST_REFERENCES,
    SCHEMA_TYPES,
    Schema,
    SchemaReference,
)
from kafkapy.registry.errors import InvalidSchema
from kafkapy.registry.schemas import avro_compatibility, json_compatibility, protobuf
from kafkapy.registry.schemas.avro import AvroSchema
from kafkapy.registry.schemas.difference import Difference
from kafkapy.registry.schemas.json_schema import JsonSchema
from kafkapy.registry.schemas.protobuf import ProtobufSchema

ParsedSchema = AvroSchema | JsonSchema | ProtobufSchema
# Returns the schema that a reference names; None if it does not exist.
Resolve = Callable[[SchemaReference], Schema | None]


def parse(schema: Schema, resolve: Resolve, *, is_new: bool) -> ParsedSchema:
    """Parses a schema. `resolve` returns the schema that a reference names, None if it does not exist.

    If `is_new`, makes further checks, which a schema that was registered before need not pass: the default values of
    Avro fields are checked, a JSON Schema is checked against its metaschema, and a `.proto` text is compiled if the
    compiler is installed. Raises InvalidSchema.
    """
    if schema.type not in SCHEMA_TYPES:
        raise InvalidSchema(f"the type {schema.type} is unknown; accepted are {', '.join(SCHEMA_TYPES)}")
    if not schema.text.strip():
        raise InvalidSchema("the schema is empty")
    referred = referred_schemas(schema, resolve)
    if schema.type == AVRO:
        return AvroSchema(schema.text, referred.values(), is_new=is_new)
    if schema.type == JSON:
        return JsonSchema(schema.text, referred, is_new=is_new)
    return ProtobufSchema(schema.text, referred, is_new=is_new)


def referred_schemas(schema: Schema, resolve: Resolve) -> dict[str, str]:
    """Returns the texts of all schemas that a schema refers to, directly or through other schemas, by the names of the
    references. Each schema comes after the schemas that it needs.

    `resolve` returns the schema that a reference names, None if it does not exist. Raises InvalidSchema for a reference
    to an unknown schema, and for too many references.
    """
    found: dict[str, str] = {}

    def add(owner: Schema, path: tuple[SchemaReference, ...]) -> None:
        for reference in owner.references:
            target = resolve(reference)
            if target is None:
                raise InvalidSchema(
                    f"the reference {reference.name} to subject {reference.subject}, version {reference.version} "
                    "cannot be resolved"
                )
            if reference.name in found or reference in path:
                continue
            if len(found) >= MOST_REFERENCES or len(path) >= DEEPEST_REFERENCE:
                raise InvalidSchema(f"the schema has more than {MOST_REFERENCES} references, or a long chain of them")
            add(target, (*path, reference))
            found[reference.name] = target.text

    add(schema, ())
    return found


def differences(reader: ParsedSchema, writer: ParsedSchema) -> list[Difference]:
    """Returns the reasons why data written with the schema `writer` may be unreadable with the schema `reader`; an
    empty list if all of it is readable.
    """
    if isinstance(reader, AvroSchema) and isinstance(writer, AvroSchema):
        return avro_compatibility.differences(reader, writer)
    if isinstance(reader, JsonSchema) and isinstance(writer, JsonSchema):
        return json_compatibility.differences(reader, writer)
    if isinstance(reader, ProtobufSchema) and isinstance(writer, ProtobufSchema):
        return protobuf.differences(reader, writer)
    return [Difference("SCHEMA_TYPE_CHANGED", "/", "the schemas have different types")]
