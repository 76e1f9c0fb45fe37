"""confluent-kafka's serializer and deserializer for Protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.client.schema import protobuf
from kafkapy.compat.confluent_kafka.schema_registry._serde import (
    BaseDeserializer,
    BaseSerializer,
    serializer_options,
    translated,
)
from kafkapy.compat.confluent_kafka.schema_registry.schema_registry_client import SchemaRegistryClient
from kafkapy.compat.confluent_kafka.serialization import SerializationContext

__all__ = ["ProtobufDeserializer", "ProtobufSerializer"]


def _refuse_old_form(values: Mapping[str, Any]) -> None:
    if values["use.deprecated.format"]:
        raise ValueError("use.deprecated.format is no longer supported")


class ProtobufSerializer(BaseSerializer):
    """Serializes messages of a generated class."""

    __slots__ = ()

    def __init__(
        self, msg_type: Any, schema_registry_client: SchemaRegistryClient, conf: Mapping[str, Any] | None = None
    ) -> None:
        options, more = serializer_options(conf, {"skip.known.types": True, "use.deprecated.format": False})
        _refuse_old_form(more)

        def make(is_key: bool) -> Any:
            return protobuf.ProtobufSerializer(schema_registry_client.registry, msg_type, is_key=is_key, **options)

        with translated():
            super().__init__(make)

    def __call__(self, message: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Returns the frame and the data of a message; None stays None."""
        return self.serialize(message, ctx)


class ProtobufDeserializer(BaseDeserializer):
    """Deserializes messages of a generated class."""

    __slots__ = ()

    def __init__(
        self,
        message_type: Any,
        conf: Mapping[str, Any] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
    ) -> None:
        _, more = serializer_options(conf, {"use.deprecated.format": False})
        _refuse_old_form(more)
        registry: Any = None if schema_registry_client is None else schema_registry_client.registry

        def make(is_key: bool) -> Any:
            return protobuf.ProtobufDeserializer(registry, message_type, is_key=is_key)

        with translated():
            super().__init__(make)

    def __call__(self, data: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Returns the message of data; None stays None."""
        return self.deserialize(data, ctx)
