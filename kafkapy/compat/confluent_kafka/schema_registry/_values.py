"""The conversion between an application's objects and the values of serializers for Avro and JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.compat.confluent_kafka.serialization import SerializationContext

Conversion = Callable[[Any, SerializationContext], Any]


def _checked(name: str, convert: Conversion | None) -> Conversion | None:
    if convert is not None and not callable(convert):
        raise ValueError(f"{name} must be callable with the signature {name}(object, SerializationContext)")
    return convert


class DictSerializer:
    """The base of serializers that accept a function `to_dict(obj, ctx)` that converts an object to a value."""

    _to_dict: Conversion | None = None

    def _take_to_dict(self, to_dict: Conversion | None) -> None:
        self._to_dict = _checked("to_dict", to_dict)

    def _to_value(self, obj: Any, ctx: SerializationContext | None) -> Any:
        return obj if self._to_dict is None else self._to_dict(obj, _required("to_dict", ctx))


class DictDeserializer:
    """The base of deserializers that accept a function `from_dict(value, ctx)`, which converts a value to an object."""

    _from_dict: Conversion | None = None

    def _take_from_dict(self, from_dict: Conversion | None) -> None:
        self._from_dict = _checked("from_dict", from_dict)

    def _from_value(self, value: Any, ctx: SerializationContext | None) -> Any:
        return value if self._from_dict is None else self._from_dict(value, _required("from_dict", ctx))


def _required(name: str, ctx: SerializationContext | None) -> SerializationContext:
    if ctx is None:
        raise TypeError(f"{name} needs a SerializationContext")
    return ctx
