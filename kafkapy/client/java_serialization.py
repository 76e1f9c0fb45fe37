"""The formats of Java's serializers for numbers, truth values, UUIDs and raw bytes, by the names of their classes."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any

PACKAGE = "org.apache.kafka.common.serialization."
# The name of the type in the classes' names -> its format for struct, in network byte order.
_FORMATS = {
    "Short": ">h",
    "Integer": ">i",
    "Long": ">q",
    "Float": ">f",
    "Double": ">d",
}


def java_serializers() -> dict[str, Callable[[str, Any], Any] | None]:
    """Returns the serializers that replace Java's, by the full names of Java's classes.

    None instead of a serializer means that the application passes bytes, which need no conversion.
    """
    found: dict[str, Callable[[str, Any], Any] | None] = {
        f"{PACKAGE}{name}Serializer": _number_serializer(name, form) for name, form in _FORMATS.items()
    }
    found |= dict.fromkeys(f"{PACKAGE}{name}Serializer" for name in ("ByteArray", "Bytes", "ByteBuffer"))
    found[f"{PACKAGE}BooleanSerializer"] = _serialize_boolean
    found[f"{PACKAGE}UUIDSerializer"] = _serialize_uuid
    found[f"{PACKAGE}VoidSerializer"] = _void
    return found


def java_deserializers() -> dict[str, Callable[[str, bytes | None], Any] | None]:
    """Returns the deserializers that replace Java's, by the full names of Java's classes.

    None instead of a deserializer means that the application gets the bytes without conversion.
    """
    found: dict[str, Callable[[str, bytes | None], Any] | None] = {
        f"{PACKAGE}{name}Deserializer": _number_deserializer(name, form) for name, form in _FORMATS.items()
    }
    found |= dict.fromkeys(f"{PACKAGE}{name}Deserializer" for name in ("ByteArray", "Bytes", "ByteBuffer"))
    found[f"{PACKAGE}BooleanDeserializer"] = _deserialize_boolean
    found[f"{PACKAGE}UUIDDeserializer"] = _deserialize_uuid
    found[f"{PACKAGE}VoidDeserializer"] = _deserialize_void
    return found


def _number_serializer(name: str, form: str) -> Callable[[str, Any], bytes | None]:
    pack = struct.Struct(form).pack

    def serialize(topic: str, value: Any) -> bytes | None:
        try:
            return None if value is None else pack(value)
        except struct.error as error:
            raise ValueError(f"{name}Serializer cannot serialize {value!r}: {error}") from None

    return serialize


def _number_deserializer(name: str, form: str) -> Callable[[str, bytes | None], Any]:
    layout = struct.Struct(form)

    def deserialize(topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        if len(data) != layout.size:
            raise ValueError(f"Size of data received by {name}Deserializer is not {layout.size}")
        return layout.unpack(data)[0]

    return deserialize


def _serialize_boolean(topic: str, value: bool | None) -> bytes | None:
    return None if value is None else bytes([bool(value)])


def _deserialize_boolean(topic: str, data: bytes | None) -> bool | None:
    if data is None:
        return None
    if len(data) != 1:
        raise ValueError("Size of data received by BooleanDeserializer is not 1")
    if data[0] > 1:
        raise ValueError(f"Unexpected byte received by BooleanDeserializer: {data[0]}")
    return data[0] == 1


def _serialize_uuid(topic: str, value: uuid.UUID | None) -> bytes | None:
    """Encodes a UUID as its text in UTF-8, as Java's serializer does; returns None for None."""
    return None if value is None else str(value).encode()


def _deserialize_uuid(topic: str, data: bytes | None) -> uuid.UUID | None:
    return None if data is None else uuid.UUID(data.decode())


def _void(topic: str, value: Any) -> None:
    if value is not None:
        raise ValueError("Data should be null for a VoidSerializer.")


def _deserialize_void(topic: str, data: bytes | None) -> None:
    if data is not None:
        raise ValueError("Data should be null for a VoidDeserializer.")
