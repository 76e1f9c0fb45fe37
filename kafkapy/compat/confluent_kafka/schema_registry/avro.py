"""confluent-kafka's serializer and deserializer for Avro."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.client.schema import avro
from kafkapy.client.schema.model import Schema as GivenSchema
from kafkapy.compat.confluent_kafka.schema_registry._model import Schema
from kafkapy.compat.confluent_kafka.schema_registry._serde import (
    BaseDeserializer,
    BaseSerializer,
    check_rules,
    serializer_options,
    translated,
)
from kafkapy.compat.confluent_kafka.schema_registry.schema_registry_client import SchemaRegistryClient
from kafkapy.compat.confluent_kafka.serialization import SerializationContext

__all__ = ["AvroDeserializer", "AvroSerializer"]


def given_schema(schema: str | Schema | None, kind: str) -> GivenSchema | None:
    """Returns a schema that a program has given, as `kafkapy.client.schema` represents it; None for None.

    A text becomes a schema of the type `kind`, such as "AVRO". Raises ValueError for rules that would have to be
    executed.
    """
    found = GivenSchema(schema, kind) if isinstance(schema, str) else None if schema is None else schema.as_model()
    check_rules(found)
    return found


class AvroSerializer(BaseSerializer):
    """Serializes dictionaries by an Avro schema; `to_dict(obj, ctx)` makes a dictionary of an object."""

    __slots__ = ("_to_dict",)

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: Callable[[Any, SerializationContext], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        if to_dict is not None and not callable(to_dict):
            raise ValueError("to_dict must be callable with the signature to_dict(object, SerializationContext)->dict")
        options, more = serializer_options(conf, {"validate.strict": False})
        schema = given_schema(schema_str, "AVRO")
        self._to_dict = to_dict

        def make(is_key: bool) -> Any:
            strict = bool(more["validate.strict"])
            return avro.AvroSerializer(
                schema_registry_client.registry, schema, is_strict=strict, is_key=is_key, **options
            )

        with translated():
            super().__init__(make)

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Returns the frame and the data of a value; None stays None."""
        if obj is not None and self._to_dict is not None:
            obj = self._to_dict(obj, ctx)  # type: ignore[arg-type]
        return self.serialize(obj, ctx)


class AvroDeserializer(BaseDeserializer):
    """Deserializes Avro data to dictionaries; `from_dict(dict, ctx)` makes an object of a dictionary."""

    __slots__ = ("_from_dict",)

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: Callable[[Any, SerializationContext], Any] | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        if from_dict is not None and not callable(from_dict):
            raise ValueError("from_dict must be callable with the signature from_dict(SerializationContext, dict)")
        serializer_options(conf)
        schema = given_schema(schema_str, "AVRO")
        self._from_dict = from_dict

        def make(is_key: bool) -> Any:
            return avro.AvroDeserializer(
                schema_registry_client.registry, schema, names_records=return_record_name, is_key=is_key
            )

        with translated():
            super().__init__(make)

    def __call__(self, data: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Returns the value of data; None stays None."""
        value = self.deserialize(data, ctx)
        if data is None or self._from_dict is None:
            return value
        return self._from_dict(value, ctx)  # type: ignore[arg-type]
