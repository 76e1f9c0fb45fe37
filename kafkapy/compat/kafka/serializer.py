"""Serializers and deserializers with the interface of kafka-python's `kafka.serializer`."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

Headers = list[tuple[str, bytes]]


class Serializer(ABC):
    """Converts a key or a value to bytes."""

    @abstractmethod
    def serialize(self, topic: str, headers: Headers, data: Any) -> Any:
        """Returns the bytes of `data`, or None for Kafka's null."""

    def close(self) -> None:
        """Is called when the producer is closed; does nothing here."""
        return


class Deserializer(ABC):
    """Converts the bytes of a key or a value."""

    @abstractmethod
    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        """Returns the value of the bytes `data`, which are None for Kafka's null."""

    def close(self) -> None:
        """Is called when the consumer is closed; does nothing here."""
        return


class DefaultSerializer(Serializer, Deserializer):
    """Serializes text in the given encoding, and deserializes bytes to text; bytes are serialized unchanged."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    def serialize(self, topic: str, headers: Headers, data: Any) -> Any:
        return data if type(data) in (bytes, bytearray, memoryview, type(None)) else data.encode(self.encoding)

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        return None if data is None else data.decode(self.encoding)


class JsonSerializer(DefaultSerializer):
    """Serializes values that JSON can represent, and deserializes JSON; None corresponds to Kafka's null."""

    def serialize(self, topic: str, headers: Headers, data: Any) -> Any:
        return None if data is None else super().serialize(topic, headers, json.dumps(data))

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        return None if data is None else json.loads(super().deserialize(topic, headers, data))


class SerializeWrapper(Serializer):
    """A serializer that calls a function of one argument with the data; without a function, returns the data."""

    def __init__(self, fn: Callable[[Any], Any] | None) -> None:
        self.fn = fn

    def serialize(self, topic: str, headers: Headers, data: Any) -> Any:
        return data if self.fn is None else self.fn(data)


class DeserializeWrapper(Deserializer):
    """A deserializer that calls a function of one argument with the bytes; without a function, returns the bytes."""

    def __init__(self, fn: Callable[[bytes], Any] | None) -> None:
        self.fn = fn

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        return data if self.fn is None else self.fn(data)


def as_serializer(configured: Any) -> Any:
    """Returns the serializer for the value of an option; None for None.

    An object with a method `serialize` is returned itself; a function of the data is wrapped in a SerializeWrapper.
    """
    if configured is None or hasattr(configured, "serialize"):
        return configured
    return SerializeWrapper(configured)


def as_deserializer(configured: Any) -> Any:
    """Returns the deserializer for the value of an option; None for None.

    An object with a method `deserialize` is returned itself; a function of the bytes is wrapped in a
    DeserializeWrapper.
    """
    if configured is None or hasattr(configured, "deserialize"):
        return configured
    return DeserializeWrapper(configured)
