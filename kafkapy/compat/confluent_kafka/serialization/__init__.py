"""The serializers and deserializers of confluent-kafka for numbers and text, and their interfaces."""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from typing import Any

from kafkapy.compat.confluent_kafka._errors import KafkaException
from kafkapy.compat.confluent_kafka._records import Headers

__all__ = [
    "Deserializer",
    "DeserializerBuilder",
    "DoubleDeserializer",
    "DoubleSerializer",
    "IntegerDeserializer",
    "IntegerSerializer",
    "MessageField",
    "SerializationContext",
    "SerializationError",
    "Serializer",
    "SerializerBuilder",
    "StringDeserializer",
    "StringSerializer",
]

_DOUBLE, _INT32 = struct.Struct(">d"), struct.Struct(">i")


class MessageField(str, Enum):  # noqa: UP042 - the text of a member is its value, also in a format string
    """The field of a record that is serialized: its key or its value."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"

    def __str__(self) -> str:
        return str(self.value)


class SerializationContext:
    """The circumstances of a conversion: the topic, the field (key or value), and the headers of the record."""

    def __init__(self, topic: str, field: MessageField, headers: Headers | None = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers


class SerializationError(KafkaException):
    """A value could not be serialized or deserialized."""


class Serializer:
    """The interface of serializers: `serializer(obj, ctx) -> bytes`."""

    __slots__: tuple[str, ...] = ()

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Serializes `obj` and returns the bytes, or None for Kafka's null. Raises SerializationError."""
        raise NotImplementedError

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Receives the function `resolver()`, which returns the id of the cluster; a client calls this method once.

        Does nothing; a serializer that needs the id overrides it.
        """

    def close(self) -> None:
        """Releases the resources of the serializer. Does nothing unless a derived class defines it."""


class Deserializer:
    """The interface of deserializers: `deserializer(data, ctx) -> value`."""

    __slots__: tuple[str, ...] = ()

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Deserializes the bytes `value` (None for Kafka's null), and returns the resulting object.

        Raises SerializationError.
        """
        raise NotImplementedError

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Receives the function `resolver()`, which returns the id of the cluster; a client calls this method once.

        Does nothing; a deserializer that needs the id overrides it.
        """

    def close(self) -> None:
        """Releases the resources of the deserializer. Does nothing unless a derived class defines it."""


class SerializerBuilder:
    """The interface of builders, which make a serializer from the configuration of a producer."""

    __slots__: tuple[str, ...] = ()

    def build(self, conf: dict[str, Any], is_key: bool) -> Any:
        """Returns the pair (serializer, `conf` without the keys that the builder has used).

        `conf` is the configuration of the producer; `is_key` is True for the serializer of keys, False for values. For
        an asynchronous client, returns a coroutine whose result is the pair.
        """
        raise NotImplementedError


class DeserializerBuilder:
    """The interface of builders, which make a deserializer from the configuration of a consumer."""

    __slots__: tuple[str, ...] = ()

    def build(self, conf: dict[str, Any], is_key: bool) -> Any:
        """Returns the pair (deserializer, `conf` without the keys that the builder has used).

        `conf` is the configuration of the consumer; `is_key` is True for the deserializer of keys, False for values.
        For an asynchronous client, returns a coroutine whose result is the pair.
        """
        raise NotImplementedError


def _packed(form: struct.Struct, value: Any) -> bytes | None:
    try:
        return None if value is None else form.pack(value)
    except struct.error as error:
        raise SerializationError(str(error)) from error


def _unpacked(form: struct.Struct, data: bytes | None) -> Any:
    try:
        return None if data is None else form.unpack(data)[0]
    except struct.error as error:
        raise SerializationError(str(error)) from error


class DoubleSerializer(Serializer):
    """Serializes a float as eight bytes, big-endian."""

    def __call__(self, obj: float | None, ctx: SerializationContext | None = None) -> bytes | None:
        return _packed(_DOUBLE, obj)


class DoubleDeserializer(Deserializer):
    """Deserializes a float from eight bytes, big-endian."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> float | None:
        found: float | None = _unpacked(_DOUBLE, value)
        return found


class IntegerSerializer(Serializer):
    """Serializes an integer as four bytes, big-endian."""

    def __call__(self, obj: int | None, ctx: SerializationContext | None = None) -> bytes | None:
        return _packed(_INT32, obj)


class IntegerDeserializer(Deserializer):
    """Deserializes an integer from four bytes, big-endian."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> int | None:
        found: int | None = _unpacked(_INT32, value)
        return found


class StringSerializer(Serializer):
    """Serializes text by one of Python's codecs, by default UTF-8."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, obj: str | None, ctx: SerializationContext | None = None) -> bytes | None:
        try:
            return None if obj is None else obj.encode(self.codec)
        except UnicodeError as error:
            raise SerializationError(str(error)) from error


class StringDeserializer(Deserializer):
    """Deserializes text by one of Python's codecs, by default UTF-8."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> str | None:
        try:
            return None if value is None else value.decode(self.codec)
        except UnicodeError as error:
            raise SerializationError(str(error)) from error
