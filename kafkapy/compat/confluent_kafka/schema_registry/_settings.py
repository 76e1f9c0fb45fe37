"""The configuration of confluent-kafka's serializers and deserializers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.compat.confluent_kafka.schema_registry._schema_id import (
    dual_schema_id_deserializer,
    prefix_schema_id_serializer,
)

# Key -> default. The value of a key whose default is a bool must be one.
_COMMON: dict[str, Any] = {
    "use.latest.version": False,
    "use.latest.with.metadata": None,
    "subject.name.strategy.type": None,
    "subject.name.strategy.conf": None,
    "subject.name.strategy": None,
}
SERIALIZER: dict[str, Any] = {
    **_COMMON,
    "auto.register.schemas": True,
    "normalize.schemas": False,
    "use.schema.id": None,
    "schema.id.serializer": prefix_schema_id_serializer,
    "validation.rules.execution": "DISABLED",
    "validation.rules.fail.fast": False,
    "validation.rules.executor": None,
}
DESERIALIZER: dict[str, Any] = {**_COMMON, "schema.id.deserializer": dual_schema_id_deserializer}
_TYPES: dict[str, tuple[type, str]] = {
    "use.schema.id": (int, "an int"),
    "use.latest.with.metadata": (dict, "a dict"),
    "subject.name.strategy.conf": (dict, "a dict"),
}


def settings(conf: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration `conf` completed with `defaults`, which has all keys and their default values.

    Raises ValueError for an unknown key, a wrong value, or keys that conflict.
    """
    values = {**defaults, **(conf or {})}
    unknown = sorted(set(values) - set(defaults))
    if unknown:
        raise ValueError(f"Unrecognized properties: {', '.join(unknown)}")
    for key, value in values.items():
        if isinstance(defaults[key], bool) and not isinstance(value, bool):
            raise ValueError(f"{key} must be a boolean value, not {value!r}")
        if callable(defaults[key]) and not callable(value):
            raise ValueError(f"{key} must be callable, not {value!r}")
        if key in _TYPES and value is not None and not isinstance(value, _TYPES[key][0]):
            raise ValueError(f"{key} must be {_TYPES[key][1]} value, not {value!r}")
    if values["use.latest.version"] and values.get("auto.register.schemas"):
        raise ValueError("cannot enable both use.latest.version and auto.register.schemas")
    return values
