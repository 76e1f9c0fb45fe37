"""confluent-kafka's serializer and deserializer for JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kafkapy.client.schema import json_schema, model
from kafkapy.compat.confluent_kafka.schema_registry._async_serde import AsyncBaseDeserializer, AsyncBaseSerializer
from kafkapy.compat.confluent_kafka.schema_registry._builders import (
    AnySerde,
    AsyncBuilding,
    Building,
    DeserializerOptions,
    FromDictOption,
    JsonDecodeOption,
    JsonEncodeOption,
    SchemaOption,
    SerializerOptions,
    ToDictOption,
)
from kafkapy.compat.confluent_kafka.schema_registry._client import SchemaRegistryClient
from kafkapy.compat.confluent_kafka.schema_registry._json_fields import (
    get_inline_tags,
    get_type,
    transform,
    validate_message,
)
from kafkapy.compat.confluent_kafka.schema_registry._model import Schema
from kafkapy.compat.confluent_kafka.schema_registry._rules import FieldTransformer
from kafkapy.compat.confluent_kafka.schema_registry._schema_id import SchemaId
from kafkapy.compat.confluent_kafka.schema_registry._serde import (
    BaseDeserializer,
    BaseSerializer,
    Reading,
    check_rules,
    given_schema,
    translated,
)
from kafkapy.compat.confluent_kafka.schema_registry._validation import ValidationRuleError
from kafkapy.compat.confluent_kafka.schema_registry._values import DictDeserializer, DictSerializer
from kafkapy.compat.confluent_kafka.schema_registry.rule_registry import RuleRegistry
from kafkapy.compat.confluent_kafka.serialization import SerializationContext

__all__ = [
    "AsyncJSONDeserializer",
    "AsyncJSONDeserializerBuilder",
    "AsyncJSONSerializer",
    "AsyncJSONSerializerBuilder",
    "JSONDeserializer",
    "JSONDeserializerBuilder",
    "JSONSerializer",
    "JSONSerializerBuilder",
    "get_inline_tags",
    "get_type",
    "transform",
    "validate_message",
]


class _JsonFields:
    """The common base of the serializer and the deserializer for JSON: it applies rules to the properties of values."""

    _client: SchemaRegistryClient | None

    def _resolved(self, schema: model.Schema) -> tuple[Any, Any, Any]:
        """Returns (schema, resources, resolver): the parsed schema, and what resolves its references.

        The last two are objects of the library `referencing`: the schemas that are referred to, and their resolver.
        """
        root = json.loads(schema.text)
        registry: Any = None if self._client is None else self._client.registry
        with translated():
            resources = json_schema.referred_resources(registry, schema)
        return root, resources, json_schema.resolver_of(resources, root)

    def _fields_of(self, schema: Schema) -> tuple[Mapping[str, set[str]] | None, FieldTransformer]:
        resolved = self._resolved(schema.as_model())
        return None, lambda ctx, change, value: transform(ctx, *resolved, "$", value, change)


class JSONSerializer(_JsonFields, DictSerializer, BaseSerializer):
    """Serializes values as JSON that a schema accepts; `to_dict(obj, ctx)` converts an object to a dictionary.

    `json_encode` replaces the function that converts a value to JSON.
    """

    schema_type = model.JSON
    _defaults = {"validate": True}

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: SchemaRegistryClient,
        to_dict: Callable[[Any, SerializationContext], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: RuleRegistry | None = None,
        json_encode: Callable[[Any], Any] | None = None,
    ) -> None:
        self._take_to_dict(to_dict)
        values = self._read_settings(conf)
        self._set_up(schema_registry_client, values, rule_conf, rule_registry)
        schema = given_schema(schema_str, self.schema_type)
        check_rules(schema, values)
        with translated():
            self._core = json_schema.JsonSerializer(
                schema_registry_client.registry,
                None if schema is None else schema.as_model(),
                validates=values["validate"],
                encode=json_encode,
                **self._core_options(),
            )

    def _violations(self, schema: model.Schema, value: Any) -> list[ValidationRuleError]:
        key = ("resolved", schema.content_key)
        root, resources, resolver = self._known.get_or_make(key, lambda: self._resolved(schema))
        return validate_message(self._validator, root, resources, resolver, value, self._fail_fast)


class JSONDeserializer(_JsonFields, DictDeserializer, BaseDeserializer):
    """Deserializes JSON and validates it; `from_dict(dict, ctx)` converts a dictionary to an object.

    The data are validated by the latest version if the configuration selects it, or else by the schema given to the
    constructor, or else by the schema whose id is in front of the data. `json_decode` replaces the function that
    decodes JSON.
    """

    schema_type = model.JSON
    _defaults = {"validate": True}

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: Callable[[Any, SerializationContext], Any] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: RuleRegistry | None = None,
        json_decode: Callable[[Any], Any] | None = None,
    ) -> None:
        self._take_from_dict(from_dict)
        self._given = given_schema(schema_str, self.schema_type)
        if self._given is None and schema_registry_client is None:
            raise ValueError("schema_str or schema_registry_client must be given")
        self._set_up(schema_registry_client, self._read_settings(conf), rule_conf, rule_registry)
        self._decode = json_decode or json_schema.decode_json
        if self._given is not None and self._values["validate"]:
            with translated():
                self._validator_of(self._given)

    def _reader(self, reading: Reading) -> Schema | None:
        if reading.latest is None and self._given is not None:
            return self._given
        return super()._reader(reading)

    def _decoded(self, data: bytes, reading: Reading, migrate: Callable[[Any], Any]) -> Any:
        value = self._decode(data)
        return migrate(value) if reading.migrations else value

    def _check(self, value: Any, reader: Schema | None) -> None:
        if self._values["validate"] and reader is not None:
            self._validator_of(reader)(value)

    def _validator_of(self, schema: Schema) -> json_schema.Validate:
        key = ("validator", schema)
        found: json_schema.Validate | None = self._known.get(key)
        if found is None:
            if self._client is None and schema.references:
                raise ValueError("a schema with references needs schema_registry_client")
            registry: Any = None if self._client is None else self._client.registry
            found = self._known.put(key, json_schema.make_validator(registry, schema.as_model()))
        return found

    def _record_name(self, writer: Schema, schema_id: SchemaId) -> str:
        root = json.loads(writer.schema_str or "null")
        return str(root.get("title", "")) if isinstance(root, dict) else ""


class AsyncJSONSerializer(AsyncBaseSerializer):
    """A JSONSerializer with coroutines: `await AsyncJSONSerializer(schema, client)`, `await serializer(obj, ctx)`."""

    _kind = JSONSerializer


class AsyncJSONDeserializer(AsyncBaseDeserializer):
    """A JSONDeserializer with coroutines: `await AsyncJSONDeserializer(schema)`, `await deserializer(data, ctx)`."""

    _kind = JSONDeserializer


class JSONSerializerBuilder(SchemaOption, ToDictOption, JsonEncodeOption, SerializerOptions, Building):
    """Builds a JSONSerializer for a producer."""

    _serde: ClassVar[AnySerde] = JSONSerializer
    _parameters = (
        *("schema_registry_config", "schema_registry_client", "schema", "to_dict", "serializer_config"),
        *("rule_config", "rule_registry", "json_encode", "serializer_init"),
    )


class JSONDeserializerBuilder(SchemaOption, FromDictOption, JsonDecodeOption, DeserializerOptions, Building):
    """Builds a JSONDeserializer for a consumer."""

    _serde: ClassVar[AnySerde] = JSONDeserializer
    _parameters = (
        *("schema_registry_config", "schema_registry_client", "schema", "from_dict", "deserializer_config"),
        *("rule_config", "rule_registry", "json_decode", "deserializer_init"),
    )


class AsyncJSONSerializerBuilder(AsyncBuilding, JSONSerializerBuilder):
    """Builds an AsyncJSONSerializer for an asynchronous producer."""

    _serde: ClassVar[AnySerde] = AsyncJSONSerializer


class AsyncJSONDeserializerBuilder(AsyncBuilding, JSONDeserializerBuilder):
    """Builds an AsyncJSONDeserializer for an asynchronous consumer."""

    _serde: ClassVar[AnySerde] = AsyncJSONDeserializer
