"""confluent-kafka's serializer and deserializer for Protobuf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kafkapy.client.schema import model, protobuf
from kafkapy.client.schema.errors import SchemaMismatch
from kafkapy.compat.confluent_kafka.schema_registry._async_serde import AsyncBaseDeserializer, AsyncBaseSerializer
from kafkapy.compat.confluent_kafka.schema_registry._builders import (
    AnySerde,
    AsyncBuilding,
    Building,
    DeserializerOptions,
    MessageTypeOption,
    SerializerOptions,
)
from kafkapy.compat.confluent_kafka.schema_registry._client import SchemaRegistryClient
from kafkapy.compat.confluent_kafka.schema_registry._model import Schema
from kafkapy.compat.confluent_kafka.schema_registry._protobuf_fields import (
    get_inline_tags,
    get_type,
    is_map_field,
    transform,
)
from kafkapy.compat.confluent_kafka.schema_registry._rules import FieldTransformer
from kafkapy.compat.confluent_kafka.schema_registry._schema_id import SchemaId
from kafkapy.compat.confluent_kafka.schema_registry._serde import (
    BaseDeserializer,
    BaseSerializer,
    Reading,
    translated,
)
from kafkapy.compat.confluent_kafka.schema_registry._subjects import reference_subject_name_strategy
from kafkapy.compat.confluent_kafka.schema_registry._validation import ValidationRuleError, ValidationRulesExecution
from kafkapy.compat.confluent_kafka.schema_registry.rule_registry import RuleRegistry
from kafkapy.compat.confluent_kafka.serialization import SerializationContext

__all__ = [
    "AsyncProtobufDeserializer",
    "AsyncProtobufDeserializerBuilder",
    "AsyncProtobufSerializer",
    "AsyncProtobufSerializerBuilder",
    "ProtobufDeserializer",
    "ProtobufDeserializerBuilder",
    "ProtobufSerializer",
    "ProtobufSerializerBuilder",
    "get_inline_tags",
    "get_type",
    "is_map_field",
    "transform",
]


class _ProtobufFields:
    """The common base of the serializer and the deserializer for Protobuf: it applies rules to the fields of values."""

    schema_type = model.PROTOBUF
    _format: ClassVar[str | None] = protobuf.SERIALIZED
    _client: SchemaRegistryClient | None
    _message_type: Any
    _values: dict[str, Any]

    def _file(self, schema: Schema) -> Any:
        assert self._client is not None
        with translated():
            return protobuf.file_descriptor(self._client.registry, schema.as_model())

    def _fields_of(self, schema: Schema) -> tuple[Mapping[str, set[str]] | None, FieldTransformer]:
        own = self._message_type.DESCRIPTOR
        indexes = protobuf.message_indexes(own)
        descriptor = protobuf.message_class_at(self._file(schema), indexes).DESCRIPTOR
        return None, lambda ctx, change, value: transform(ctx, descriptor, value, change)

    def _refuse_old_form(self) -> None:
        if self._values["use.deprecated.format"]:
            raise ValueError("use.deprecated.format is no longer supported")


class ProtobufSerializer(_ProtobufFields, BaseSerializer):
    """Serializes messages of a generated class, which is given to the constructor."""

    _defaults = {
        "skip.known.types": True,
        "use.deprecated.format": False,
        "reference.subject.name.strategy": reference_subject_name_strategy,
    }

    def __init__(
        self,
        msg_type: Any,
        schema_registry_client: SchemaRegistryClient,
        conf: Mapping[str, Any] | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        values = self._read_settings(conf)
        if self._validation is not ValidationRulesExecution.DISABLED:
            raise ValueError("validation.rules.execution must be DISABLED: kafkapy reads no such rules of Protobuf")
        self._set_up(schema_registry_client, values, rule_conf, rule_registry)
        self._refuse_old_form()
        self._message_type = msg_type
        reference_subject = values["reference.subject.name.strategy"]
        with translated():
            self._core = protobuf.ProtobufSerializer(
                schema_registry_client.registry,
                msg_type,
                reference_subject=lambda file: reference_subject(None, file),
                skips_known=values["skip.known.types"],
                **self._core_options(),
            )

    def _to_value(self, obj: Any, ctx: SerializationContext | None) -> Any:
        if not isinstance(obj, self._message_type):
            raise ValueError(f"message must be of type {self._message_type} not {type(obj)}")
        return obj

    def _message_indexes(self) -> list[int]:
        return list(protobuf.message_indexes(self._message_type.DESCRIPTOR))

    def _violations(self, schema: model.Schema, value: Any) -> list[ValidationRuleError]:
        return []


class ProtobufDeserializer(_ProtobufFields, BaseDeserializer):
    """Deserializes data to messages of a generated class, which is given to the constructor."""

    _defaults = {"use.deprecated.format": False}

    def __init__(
        self,
        message_type: Any,
        conf: Mapping[str, Any] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        rule_conf: Mapping[str, Any] | None = None,
        rule_registry: RuleRegistry | None = None,
    ) -> None:
        self._set_up(schema_registry_client, self._read_settings(conf), rule_conf, rule_registry)
        self._refuse_old_form()
        self._message_type = message_type

    def _decoded(self, data: bytes, reading: Reading, migrate: Callable[[Any], Any]) -> Any:
        if not reading.migrations:
            return _message(self._message_type, data)
        assert reading.writer is not None
        from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

        written = protobuf.message_class_at(
            self._file(reading.writer), tuple(reading.schema_id.message_indexes or (0,))
        )
        value = migrate(MessageToDict(_message(written, data), preserving_proto_field_name=True))
        try:
            return ParseDict(value, self._message_type())
        except ParseError as error:
            raise SchemaMismatch(f"the migrated message does not fit {self._message_type}: {error}") from error

    def _record_name(self, writer: Schema, schema_id: SchemaId) -> str:
        return str(self._message_type.DESCRIPTOR.full_name)


def _message(kind: Any, data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise SchemaMismatch(f"the data are not a message of their schema: {error}") from error


class AsyncProtobufSerializer(AsyncBaseSerializer):
    """A ProtobufSerializer with coroutines: `await AsyncProtobufSerializer(kind, client)`, `await serializer(obj)`."""

    _kind = ProtobufSerializer


class AsyncProtobufDeserializer(AsyncBaseDeserializer):
    """A ProtobufDeserializer with coroutines: `await AsyncProtobufDeserializer(kind)`, `await deserializer(data)`."""

    _kind = ProtobufDeserializer


class ProtobufSerializerBuilder(MessageTypeOption, SerializerOptions, Building):
    """Builds a ProtobufSerializer for a producer."""

    _serde: ClassVar[AnySerde] = ProtobufSerializer
    _parameters = (
        *("schema_registry_config", "schema_registry_client", "message_type", "serializer_config"),
        *("rule_config", "rule_registry", "serializer_init"),
    )


class ProtobufDeserializerBuilder(MessageTypeOption, DeserializerOptions, Building):
    """Builds a ProtobufDeserializer for a consumer."""

    _serde: ClassVar[AnySerde] = ProtobufDeserializer
    _parameters = (
        *("schema_registry_config", "schema_registry_client", "message_type", "deserializer_config"),
        *("rule_config", "rule_registry", "deserializer_init"),
    )


class AsyncProtobufSerializerBuilder(AsyncBuilding, ProtobufSerializerBuilder):
    """Builds an AsyncProtobufSerializer for an asynchronous producer."""

    _serde: ClassVar[AnySerde] = AsyncProtobufSerializer


class AsyncProtobufDeserializerBuilder(AsyncBuilding, ProtobufDeserializerBuilder):
    """Builds an AsyncProtobufDeserializer for an asynchronous consumer."""

    _serde: ClassVar[AnySerde] = AsyncProtobufDeserializer
