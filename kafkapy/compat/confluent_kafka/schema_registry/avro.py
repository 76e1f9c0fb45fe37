"""confluent-kafka's serializer and deserializer for Avro."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kafkapy.client.schema import avro, model
from kafkapy.compat.confluent_kafka.schema_registry._async_serde import AsyncBaseDeserializer, AsyncBaseSerializer
from kafkapy.compat.confluent_kafka.schema_registry._avro_fields import (
    get_inline_tags,
    get_type,
    transform,
    validate_message,
)
from kafkapy.compat.confluent_kafka.schema_registry._builders import (
    AnySerde,
    AsyncBuilding,
    Building,
    DeserializerOptions,
    FromDictOption,
    RecordNameOption,
    SchemaOption,
    SerializerOptions,
    ToDictOption,
)
from kafkapy.compat.confluent_kafka.schema_registry._client import SchemaRegistryClient
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
    "AsyncAvroDeserializer",
    "AsyncAvroDeserializerBuilder",
    "AsyncAvroSerializer",
    "AsyncAvroSerializerBuilder",
    "AvroDeserializer",
    "AvroDeserializerBuilder",
    "AvroSerializer",
    "AvroSerializerBuilder",
    "get_inline_tags",
    "get_type",
    "transform",
    "validate_message",
]


class _AvroFields:
    """The common base of the serializer and the deserializer for Avro: it applies rules to the fields of values."""

    _client: SchemaRegistryClient | None

    def _expanded(self, schema: model.Schema) -> Any:
        assert self._client is not None
        with translated():
            return avro.expand_avro(self._client.registry, schema)

    def _fields_of(self, schema: Schema) -> tuple[Mapping[str, set[str]] | None, FieldTransformer]:
        expanded = self._expanded(schema.as_model())
        return get_inline_tags(expanded), lambda ctx, change, value: transform(ctx, expanded, value, change)


class AvroSerializer(_AvroFields, DictSerializer, BaseSerializer):
    """Serializes dictionaries by an Avro schema; `to_dict(obj, ctx)` converts an object to a dictionary."""

    schema_type = model.AVRO
    _defaults = {"validate.strict": False, "validate.strict.allow.default": False}

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: Callable[[Any, SerializationContext], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        self._take_to_dict(to_dict)
        values = self._read_settings(conf)
        self._set_up(schema_registry_client, values, rule_conf, rule_registry)
        schema = given_schema(schema_str, self.schema_type)
        check_rules(schema, values)
        with translated():
            self._core = avro.AvroSerializer(
                schema_registry_client.registry,
                None if schema is None else schema.as_model(),
                is_strict=values["validate.strict"],
                is_strict_but_for_defaults=values["validate.strict.allow.default"],
                **self._core_options(),
            )

    def _violations(self, schema: model.Schema, value: Any) -> list[ValidationRuleError]:
        expanded = self._known.get_or_make(("expanded", schema.content_key), lambda: self._expanded(schema))
        return validate_message(self._validator, expanded, value, self._fail_fast)


class AvroDeserializer(_AvroFields, DictDeserializer, BaseDeserializer):
    """Deserializes Avro data to dictionaries; `from_dict(dict, ctx)` converts a dictionary to an object."""

    schema_type = model.AVRO

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: Callable[[Any, SerializationContext], Any] | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        self._take_from_dict(from_dict)
        if not isinstance(return_record_name, bool):
            raise ValueError(f"return_record_name must be a boolean value, not {return_record_name!r}")
        self._set_up(schema_registry_client, self._read_settings(conf), rule_conf, rule_registry)
        self._registry = schema_registry_client.registry
        self._given = given_schema(schema_str, self.schema_type)
        with translated():
            self._reads = avro.AvroDeserializer(self._registry, names_records=return_record_name)
            self._given_parsed = None if self._given is None else self._parsed(self._given).schema

    def _reader(self, reading: Reading) -> Schema | None:
        if reading.latest is None and self._given is not None:
            return self._given
        return super()._reader(reading)

    def _decoded(self, data: bytes, reading: Reading, migrate: Callable[[Any], Any]) -> Any:
        assert reading.writer is not None
        writer = self._parsed(reading.writer)
        if reading.migrations:
            return migrate(self._reads.read(data, 0, writer, None))
        reader = self._given_parsed if reading.latest is None else self._parsed(reading.latest.schema).schema
        return self._reads.read(data, 0, writer, reader)

    def _parsed(self, schema: Schema) -> avro.ParsedAvro:
        key = ("parsed", schema)
        found: avro.ParsedAvro | None = self._known.get(key)
        return found or self._known.put(key, avro.parse_avro(self._registry, schema.as_model()))

    def _record_name(self, writer: Schema, schema_id: SchemaId) -> str:
        with translated():
            parsed = self._parsed(writer).schema
        return str(parsed.get("name", "")) if isinstance(parsed, dict) else ""


class AsyncAvroSerializer(AsyncBaseSerializer):
    """An AvroSerializer with coroutines: `await AsyncAvroSerializer(client, schema)`, `await serializer(obj, ctx)`."""

    _kind = AvroSerializer


class AsyncAvroDeserializer(AsyncBaseDeserializer):
    """An AvroDeserializer with coroutines: `await AsyncAvroDeserializer(client)`, `await deserializer(data, ctx)`."""

    _kind = AvroDeserializer


class AvroSerializerBuilder(SchemaOption, ToDictOption, SerializerOptions, Building):
    """Builds an AvroSerializer for a producer."""

    _serde: ClassVar[AnySerde] = AvroSerializer
    _parameters = (
        *("schema_registry_config", "schema_registry_client", "schema", "to_dict", "serializer_config"),
        *("rule_config", "rule_registry", "serializer_init"),
    )


class AvroDeserializerBuilder(SchemaOption, FromDictOption, RecordNameOption, DeserializerOptions, Building):
    """Builds an AvroDeserializer for a consumer."""

    _serde: ClassVar[AnySerde] = AvroDeserializer
    _parameters = (
        *("schema_registry_config", "schema_registry_client", "schema", "from_dict", "return_record_name"),
        *("deserializer_config", "rule_config", "rule_registry", "deserializer_init"),
    )


class AsyncAvroSerializerBuilder(AsyncBuilding, AvroSerializerBuilder):
    """Builds an AsyncAvroSerializer for an asynchronous producer."""

    _serde: ClassVar[AnySerde] = AsyncAvroSerializer


class AsyncAvroDeserializerBuilder(AsyncBuilding, AvroDeserializerBuilder):
    """Builds an AsyncAvroDeserializer for an asynchronous consumer."""

    _serde: ClassVar[AnySerde] = AsyncAvroDeserializer
