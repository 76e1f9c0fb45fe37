"""The forms in which keys and values are embedded in the JSON of requests and responses.

They are base64, JSON, text, and the forms that need a schema from a schema registry, such as Avro.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from typing import Any

from kafkapy.client.schema import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    RegistryClient,
    RegistryFailure,
    Schema,
    SchemaMismatch,
)
from kafkapy.client.schema.avro import ParsedAvro
from kafkapy.client.schema.bounded_cache import BoundedCache
from kafkapy.client.schema.subject_names import KEY
from kafkapy.client.schema.wire_format import Frame
from kafkapy.errors import ConfigError
from kafkapy.http.json_api import RequestRefused, strict_json
from kafkapy.rest import errors

BINARY, JSON, AVRO, JSON_SCHEMA, TEXT = "binary", "json", "avro", "jsonschema", "text"
CONSUMER_FORMATS = (BINARY, JSON, AVRO, JSON_SCHEMA)
WITH_SCHEMA = (AVRO, JSON_SCHEMA)
_MOST_SERIALIZERS = 1000
Encode = Callable[[str, Any], bytes | None]
Decode = Callable[[bytes | None], Any]


def encode_binary(topic: str, value: Any) -> bytes | None:
    """Returns the bytes that the base64 text `value` encodes, or None if `value` is None.

    Raises RequestRefused for any other value. `topic` is a parameter of all encoders, and has no effect here.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise errors.unprocessable("binary data must be a base64 string")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:  # binascii.Error, or a character that is not ASCII
        raise errors.unprocessable(f"data are not base64: {error}") from None


def encode_json(topic: str, value: Any) -> bytes | None:
    """Returns the JSON text of `value`, encoded as UTF-8, or None (Kafka's null) if `value` is None.

    `topic` is a parameter of all encoders, and has no effect here.
    """
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def encode_text(topic: str, value: Any) -> bytes | None:
    """Returns the text `value` encoded as UTF-8, or None if `value` is None.

    Raises RequestRefused for any other value. `topic` is a parameter of all encoders, and has no effect here.
    """
    if not isinstance(value, str | None):
        raise errors.unprocessable("a STRING must be a string")
    return None if value is None else value.encode()


def decode_binary(data: bytes | None) -> str | None:
    """Returns the bytes of a record's key or value as base64 text for JSON, or None if `data` is None.

    The function is called a decoder, as are all functions of this module that turn bytes into values for JSON.
    """
    return None if data is None else base64.b64encode(data).decode()


def decode_json(data: bytes | None) -> Any:
    """Returns the value that the JSON text `data` represents, or None if `data` is None.

    Raises RequestRefused for data that are not JSON.
    """
    if data is None:
        return None
    try:
        return strict_json(data)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(50002, f"Kafka error: a record is not JSON: {error}") from None


class AvroJsonSerializer(AvroSerializer):
    """Serializes values in Avro's JSON encoding, in which a union's value names its branch."""

    def serialize(self, value: Any, schema: Schema) -> bytes:
        reader = self._library.json_reader(io.StringIO(json.dumps(value)), self.parsed_of(schema).schema)
        try:
            found = next(reader)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, StopIteration) as error:
            raise SchemaMismatch(f"the value does not fit the Avro schema: {error or type(error).__name__}") from error
        return super().serialize(found, schema)


class AvroJsonDeserializer(AvroDeserializer):
    """Deserializes Avro data to values in Avro's JSON encoding."""

    def __init__(self, registry: RegistryClient, *, is_key: bool) -> None:
        # Without their names, records of a union would get the name of the first branch with the same fields.
        super().__init__(registry, is_key=is_key, names_records=True)

    def deserialize(self, data: bytes, frame: Frame, parsed: ParsedAvro) -> Any:
        output = io.StringIO()
        self._library.json_writer(output, parsed.schema, [super().deserialize(data, frame, parsed)])
        # Numbers that JSON does not have become texts, as in Confluent's proxy.
        return json.loads(output.getvalue(), parse_constant=str)


class Formats:
    """The encoders and decoders of keys and values. Any thread may use the object. `registry` is None if the proxy has
    no schema registry; then the forms that need schemas are refused."""

    def __init__(self, registry: RegistryClient | None) -> None:
        self._registry = registry
        self._serializers: BoundedCache[tuple[str, str, int | str], Any] = BoundedCache(_MOST_SERIALIZERS)

    def required_registry(self) -> RegistryClient:
        """Returns the client of the registry. Raises RequestRefused if there is no registry."""
        if self._registry is None:
            raise RequestRefused(
                42205, "Schemas need a registry: set schema.registry.url in the configuration of the REST proxy"
            )
        return self._registry

    def encoder(self, form: str, part: str, schema: str | int | None) -> Encode:
        """Returns the function that encodes keys or values (`part` is "key" or "value") in a form, such as AVRO.

        `schema` is the text or the id of the schema; it is None for forms that need no schema. This method raises
        RequestRefused if a schema is necessary and is missing or invalid, or if there is no registry. The returned
        function blocks if the registry has to be asked for the schema; it raises RequestRefused for a value that the
        form cannot represent, and if the registry fails.
        """
        if form not in WITH_SCHEMA:
            return {BINARY: encode_binary, JSON: encode_json, TEXT: encode_text}[form]
        if schema is None:
            raise errors.key_schema_missing() if part == KEY else errors.value_schema_missing()
        if not isinstance(schema, str | int):
            raise errors.unprocessable(f"{part}_schema must be a string, and {part}_schema_id a number")
        registry = self.required_registry()
        found = self._serializers.get((form, part, schema))
        if found is None:
            kind: Any = AvroJsonSerializer if form == AVRO else JsonSerializer
            given = {"schema_id": schema} if isinstance(schema, int) else {"schema": schema}
            try:
                found = kind(registry, is_key=part == KEY, **given)
            except (SchemaMismatch, ConfigError) as error:
                raise errors.invalid_schema(error) from None
            self._serializers.put((form, part, schema), found)

        def encode(topic: str, value: Any) -> bytes | None:
            try:
                data: bytes | None = found(topic, value)
            except SchemaMismatch as error:
                raise errors.conversion_failed(error) from None
            except RegistryFailure as error:
                raise (errors.invalid_schema if error.status == 422 else errors.registry_failed)(error) from None
            return data

        return encode

    def decoder(self, form: str, part: str) -> Decode:
        """Returns the function that decodes keys or values (`part` is "key" or "value") in a form of CONSUMER_FORMATS.

        This method raises RequestRefused if the form needs a registry and there is none; the returned function raises
        it for data that do not have the form.
        """
        if form not in WITH_SCHEMA:
            return {BINARY: decode_binary, JSON: decode_json}[form]
        kind: Any = AvroJsonDeserializer if form == AVRO else JsonDeserializer
        deserializer = kind(self.required_registry(), is_key=part == KEY)

        def decode(data: bytes | None) -> Any:
            try:
                return deserializer("", data)
            except RegistryFailure as error:
                raise errors.registry_failed(error) from None
            except ValueError as error:  # SchemaMismatch and WrongFrame
                raise RequestRefused(50002, f"Kafka error: a record cannot be decoded: {error}") from None

        return decode
