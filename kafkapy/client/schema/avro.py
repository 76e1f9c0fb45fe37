"""The serializer and the deserializer of Avro, which use the library fastavro and the schemas of a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from kafkapy.client.schema.avro_shape import check_arrays, check_depth, is_recursive
from kafkapy.client.schema.errors import LibraryMissing, SchemaMismatch
from kafkapy.client.schema.model import AVRO, Schema
from kafkapy.client.schema.registry_client import RegistryClient
from kafkapy.client.schema.serde import SchemaDeserializer, SchemaSerializer
from kafkapy.client.schema.wire_format import Frame
from kafkapy.named_tuple import NamedTuple


def _library() -> Any:
    try:
        import fastavro
        import fastavro.schema
    except ImportError:
        raise LibraryMissing("fastavro") from None
    return fastavro


class ParsedAvro(NamedTuple):
    """A schema in fastavro's parsed form, and the function that reads data of this schema.

    `is_recursive` is True if a type of the schema contains itself. `is_bytes` is True if the schema is the type bytes
    alone, whose data Confluent's serializers write without their length.
    """

    schema: Any
    is_recursive: bool
    read: Callable[..., Any]
    is_bytes: bool = False


# What fastavro raises for JSON of another form than a schema's, such as a number.
_UNEXPECTED = (ValueError, TypeError, KeyError, IndexError, AttributeError)


def parse_avro(registry: RegistryClient, schema: Schema) -> ParsedAvro:
    """Parses a schema, and gets the schemas that it refers to from the registry.

    Raises SchemaMismatch if a schema is invalid.
    """
    library = _library()
    named: dict[str, Any] = {}
    try:
        for each in registry.referred(schema).values() if schema.references else ():
            library.schema.parse_schema(_loaded(each.text), named_schemas=named)
        parsed = library.schema.parse_schema(_loaded(schema.text), named_schemas=named)
        check_arrays(parsed, named)
        has_levels = is_recursive(parsed, named)
    except RecursionError as error:
        raise SchemaMismatch("the Avro schema is nested too deeply") from error
    except (library.schema.SchemaParseException, library.schema.UnknownType, *_UNEXPECTED) as error:
        raise SchemaMismatch(f"the Avro schema is invalid: {error}") from error
    if has_levels:
        from fastavro._read_py import schemaless_reader

        return ParsedAvro(parsed, True, schemaless_reader)
    is_bytes = parsed == "bytes" or (isinstance(parsed, dict) and parsed["type"] == "bytes")
    has_logical_type = isinstance(parsed, dict) and "logicalType" in parsed
    return ParsedAvro(parsed, False, library.schemaless_reader, is_bytes and not has_logical_type)


def expand_avro(registry: RegistryClient, schema: Schema) -> Any:
    """Returns a schema in which each reference to a named type is replaced by the type's definition.

    A reference of a recursive type to itself stays.
    """
    library = _library()
    named: dict[str, Any] = {}
    for each in registry.referred(schema).values() if schema.references else ():
        library.schema.parse_schema(_loaded(each.text), named_schemas=named)
    return library.schema.parse_schema(_loaded(schema.text), named_schemas=named, expand=True, _write_hint=False)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # the bare name of a primitive type


class AvroSerializer(SchemaSerializer):
    """Serializes values by an Avro schema: dictionaries for records, and Python's types as fastavro maps them.

    `schema` is the JSON text of a schema, or a Schema with references. It may be None if `use_latest` or `schema_id` is
    given. Without any of these three, each call raises SchemaMismatch. `to_value(value)` converts an application's
    object to a dictionary or another value that fastavro accepts. `is_strict` refuses values with other fields than
    those of the schema; `is_strict_but_for_defaults` does the same, but accepts that fields with a default are missing.
    `options` are the keyword arguments of SchemaSerializer, such as `auto_register`.
    """

    schema_type = AVRO

    def __init__(
        self,
        registry: RegistryClient,
        schema: str | Schema | None = None,
        *,
        to_value: Callable[[Any], Any] | None = None,
        is_strict: bool = False,
        is_strict_but_for_defaults: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(registry, **options)
        self._library = _library()
        self._given = Schema(schema) if isinstance(schema, str) else schema
        self._to_value = to_value
        self._strictness = {"strict": is_strict, "strict_allow_default": is_strict_but_for_defaults}
        self._own_parsed = None if self._given is None else parse_avro(registry, self._given)

    def own_schema(self) -> Schema:
        if self._given is None:
            raise SchemaMismatch("an AvroSerializer without a schema needs use_latest or schema_id")
        return self._given

    def record_name(self) -> str:
        parsed = None if self._own_parsed is None else self._own_parsed.schema
        if isinstance(parsed, dict):
            return str(parsed.get("name", parsed.get("type", "")))
        return parsed if isinstance(parsed, str) else ""

    def parsed_of(self, schema: Schema) -> ParsedAvro:
        """Returns a schema, parsed together with the schemas that it refers to. Raises SchemaMismatch if one is
        invalid.
        """
        if schema is self._given and self._own_parsed is not None:
            return self._own_parsed
        found: ParsedAvro = self._made_of(schema, lambda: parse_avro(self._registry, schema))
        return found

    def serialize(self, value: Any, schema: Schema) -> bytes:
        parsed = self.parsed_of(schema)
        if self._to_value is not None:
            value = self._to_value(value)
        if parsed.is_bytes and isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        buffer = io.BytesIO()
        try:
            if parsed.is_recursive:
                check_depth(value)
            self._library.schemaless_writer(buffer, parsed.schema, value, **self._strictness)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise SchemaMismatch(f"the value does not fit the Avro schema: {error or type(error).__name__}") from error
        return buffer.getvalue()


# What fastavro raises for data that are not of the schema.
_UNFIT_DATA = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    StopIteration,
    OverflowError,
    RecursionError,
)


class AvroDeserializer(SchemaDeserializer):
    """Deserializes Avro data to dictionaries and Python's types.

    `schema` is the reader's schema, to which data of other versions are resolved; None returns data as they were
    written. `from_value` turns each value into an application's object. `names_records` returns a record within a union
    as a pair of its name and its value.
    """

    def __init__(
        self,
        registry: RegistryClient,
        schema: str | Schema | None = None,
        *,
        from_value: Callable[[Any], Any] | None = None,
        names_records: bool = False,
        is_key: bool = False,
    ) -> None:
        super().__init__(registry, is_key=is_key)
        self._library = _library()
        given = Schema(schema) if isinstance(schema, str) else schema
        self._reader = None if given is None else parse_avro(registry, given).schema
        self._from_value = from_value
        self._names_records = names_records

    def parse(self, schema: Schema) -> ParsedAvro:
        return parse_avro(self._registry, schema)

    def deserialize(self, data: bytes, frame: Frame, parsed: ParsedAvro) -> Any:
        value = self.read(data, frame.start, parsed, self._reader)
        return value if self._from_value is None else self._from_value(value)

    def read(self, data: bytes, start: int, parsed: ParsedAvro, reader: Any) -> Any:
        """Decodes the value that begins at position `start` of `data`.

        `parsed` is the schema with which the value was written. `reader` is the schema, as fastavro parses it, to whose
        form the value is converted; None keeps the form in which it was written. Raises SchemaMismatch if the data do
        not fit the schema.
        """
        if parsed.is_bytes:
            return memoryview(data)[start:].tobytes()
        buffer = io.BytesIO(data)
        buffer.seek(start)
        try:
            return parsed.read(buffer, parsed.schema, reader, return_record_name=self._names_records)
        except _UNFIT_DATA as error:
            raise SchemaMismatch(f"the data do not fit their Avro schema: {error or type(error).__name__}") from error
        except self._library.read.SchemaResolutionError as error:
            raise SchemaMismatch(f"the reader's Avro schema cannot read the data: {error}") from error
