"""Serializers and deserializers: text, JSON and msgpack, and the lookup of what a configuration names.

A serializer is a callable `(topic, value) -> bytes | None`, a deserializer `(topic, data) -> value`; None is Kafka's
null and passes through unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from kafkapy.errors import ConfigError

Serializer = Callable[[str, Any], Any]
Deserializer = Callable[[str, bytes | None], Any]


def serialize_bytes(topic: str, value: Any) -> Any:
    """Bytes stay as they are; text becomes UTF-8."""
    return value


def serialize_text(topic: str, value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def deserialize_text(topic: str, data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def serialize_json(topic: str, value: Any) -> bytes | None:
    """Compact JSON in UTF-8; None is null of Kafka, not of JSON."""
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def deserialize_json(topic: str, data: bytes | None) -> Any:
    return None if data is None else json.loads(data)


def serialize_msgpack(topic: str, value: Any) -> bytes | None:
    """msgpack, by the package of that name."""
    import msgpack

    return None if value is None else msgpack.packb(value)


def deserialize_msgpack(topic: str, data: bytes | None) -> Any:
    import msgpack

    return None if data is None else msgpack.unpackb(data)


_JAVA = "org.apache.kafka.common.serialization."
# Names a configuration may use beside a callable; Java's are of files that both worlds read.
SERIALIZERS: dict[str, Serializer | None] = {
    "bytes": None,
    "text": serialize_text,
    "json": serialize_json,
    "msgpack": serialize_msgpack,
    f"{_JAVA}ByteArraySerializer": None,
    f"{_JAVA}StringSerializer": serialize_text,
}
DESERIALIZERS: dict[str, Deserializer | None] = {
    "bytes": None,
    "text": deserialize_text,
    "json": deserialize_json,
    "msgpack": deserialize_msgpack,
    f"{_JAVA}ByteArrayDeserializer": None,
    f"{_JAVA}StringDeserializer": deserialize_text,
}


def find_serializer(key: str, configured: Any) -> Serializer | None:
    """The serializer of a configuration's value: a callable, one of our names, or `module:name`. None: bytes stay."""
    found: Serializer | None = _find(key, configured, SERIALIZERS)
    return found


def find_deserializer(key: str, configured: Any) -> Deserializer | None:
    """As `find_serializer`."""
    found: Deserializer | None = _find(key, configured, DESERIALIZERS)
    return found


def _find(key: str, configured: Any, known: dict[str, Any]) -> Any:
    if configured is None or callable(configured):
        return configured
    if configured in known:
        return known[configured]
    return load_object(key, configured)


def load_object(key: str, name: Any) -> Any:
    """What `module:name` names; ConfigError that names the key if there is no such thing."""
    module, _, attribute = str(name).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"Invalid value {name} for configuration {key}: not found ({error})") from None
