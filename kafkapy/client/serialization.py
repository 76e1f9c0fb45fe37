"""Serializers and deserializers for text, JSON and msgpack, and their lookup by name.

A serializer is a callable `(topic, value) -> bytes | None`, a deserializer `(topic, data) -> value`; None is Kafka's
null and stays None.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from kafkapy.client.java_serialization import PACKAGE as JAVA
from kafkapy.client.java_serialization import java_deserializers, java_serializers
from kafkapy.errors import ConfigError

Serializer = Callable[[str, Any], Any]
Deserializer = Callable[[str, bytes | None], Any]


def serialize_bytes(topic: str, value: Any) -> Any:
    """Returns the value unchanged; the producer encodes text as UTF-8."""
    return value


def serialize_text(topic: str, value: str | None) -> bytes | None:
    """Encodes text as UTF-8; returns None for None."""
    return None if value is None else value.encode()


def deserialize_text(topic: str, data: bytes | None) -> str | None:
    """Decodes UTF-8; returns None for None. Raises UnicodeDecodeError if the data are not UTF-8."""
    return None if data is None else data.decode()


def serialize_json(topic: str, value: Any) -> bytes | None:
    """Encodes a value as compact JSON in UTF-8; None becomes Kafka's null, not JSON's.

    Raises TypeError or ValueError for a value that JSON cannot represent.
    """
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def deserialize_json(topic: str, data: bytes | None) -> Any:
    """Decodes JSON; returns None for None. Raises json.JSONDecodeError if the data are not JSON."""
    return None if data is None else json.loads(data)


def serialize_msgpack(topic: str, value: Any) -> bytes | None:
    """Encodes a value with the package `msgpack`; None becomes Kafka's null. Raises ImportError without the package."""
    import msgpack

    return None if value is None else msgpack.packb(value)


def deserialize_msgpack(topic: str, data: bytes | None) -> Any:
    """Decodes a value with the package `msgpack`; returns None for None. Raises ImportError without the package."""
    import msgpack

    return None if data is None else msgpack.unpackb(data)


# The names that a configuration may use instead of a callable; Java's names are for files that Java's clients read too.
SERIALIZERS: dict[str, Serializer | None] = {
    "bytes": None,
    "text": serialize_text,
    "json": serialize_json,
    "msgpack": serialize_msgpack,
    f"{JAVA}StringSerializer": serialize_text,
    **java_serializers(),
}
DESERIALIZERS: dict[str, Deserializer | None] = {
    "bytes": None,
    "text": deserialize_text,
    "json": deserialize_json,
    "msgpack": deserialize_msgpack,
    f"{JAVA}StringDeserializer": deserialize_text,
    **java_deserializers(),
}


def find_serializer(key: str, configured: Any) -> Serializer | None:
    """Returns the serializer that a configuration value names; None if the values are bytes already.

    `configured` is a callable, a known name, or `module:name`; `key` is the configuration key for error messages.
    """
    found: Serializer | None = _find(key, configured, SERIALIZERS)
    return found


def find_deserializer(key: str, configured: Any) -> Deserializer | None:
    """Returns the deserializer that a configuration value names; None if the values stay bytes.

    `configured` is a callable, a known name, or `module:name`; `key` is the configuration key for error messages.
    """
    found: Deserializer | None = _find(key, configured, DESERIALIZERS)
    return found


def _find(key: str, configured: Any, known: dict[str, Any]) -> Any:
    if configured is None or callable(configured):
        return configured
    if configured in known:
        return known[configured]
    return load_object(key, configured)


def load_object(key: str, name: Any) -> Any:
    """Imports and returns the object that `name` names as `module:name`.

    Raises ConfigError, which names the configuration key `key`, if the object is not found.
    """
    module, _, attribute = str(name).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"Invalid value {name} for configuration {key}: not found ({error})") from None
