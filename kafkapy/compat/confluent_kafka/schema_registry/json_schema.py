"""confluent-kafka's serializer and deserializer for JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.client.schema import json_schema
from kafkapy.compat.confluent_kafka.schema_registry._model import Schema
from kafkapy.compat.confluent_kafka.schema_registry._serde import (
    BaseDeserializer,
    BaseSerializer,
    serializer_options,
    translated,
)
from kafkapy.compat.confluent_kafka.schema_registry.avro import given_schema
from kafkapy.compat.confluent_kafka.schema_registry.schema_registry_client import SchemaRegistryClient
from kafkapy.compat.confluent_kafka.serialization import SerializationContext

__all__ = ["JSONDeserializer", "JSONSerializer"]


class JSONSerializer(BaseSerializer):
    """Serializes values as JSON that a schema accepts; `to_dict(obj, ctx)` makes a dictionary of an object."""

    __slots__ = ("_to_dict",)

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: SchemaRegistryClient,
        to_dict: Callable[[Any, SerializationContext], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        options, more = serializer_options(conf, {"validate": True})
        schema = given_schema(schema_str, "JSON")
        self._to_dict = to_dict

        def make(is_key: bool) -> Any:
            validates = bool(more["validate"])
            return json_schema.JsonSerializer(
                schema_registry_client.registry, schema, validates=validates, is_key=is_key, **options
            )

        with translated():
            super().__init__(make)

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Returns the frame and the data of a value; None stays None."""
        if obj is not None and self._to_dict is not None:
            obj = self._to_dict(obj, ctx)  # type: ignore[arg-type]
        return self.serialize(obj, ctx)


class JSONDeserializer(BaseDeserializer):
    """Deserializes JSON and validates it; `from_dict(dict, ctx)` makes an object of a dictionary.

    Without a client of the registry the data are validated by the given schema.
    """

    __slots__ = ("_from_dict", "_validate")

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: Callable[[Any, SerializationContext], Any] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        _, more = serializer_options(conf, {"validate": True})
        schema = given_schema(schema_str, "JSON")
        if schema is None and schema_registry_client is None:
            raise ValueError("schema_str or schema_registry_client must be given")
        self._from_dict = from_dict
        self._validate: Callable[[Any], None] | None = None
        registry: Any = None if schema_registry_client is None else schema_registry_client.registry

        def make(is_key: bool) -> Any:
            validates = bool(more["validate"]) and registry is not None
            return json_schema.JsonDeserializer(registry, validates=validates, is_key=is_key)

        with translated():
            super().__init__(make)
            if schema is not None and more["validate"]:
                self._validate = json_schema.make_validator(registry, schema)

    def __call__(self, data: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Returns the value of data; None stays None."""
        value = self.deserialize(data, ctx)
        if data is None:
            return None
        if self._validate is not None:
            with translated():
                self._validate(value)
        return value if self._from_dict is None else self._from_dict(value, ctx)  # type: ignore[arg-type]
