"""The common parts of confluent-kafka's serializers and deserializers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafkapy.client.schema.errors import RegistryFailure, SchemaMismatch, WrongFrame
from kafkapy.client.schema.serde import SchemaDeserializer, SchemaSerializer
from kafkapy.client.schema.subject_names import KEY, SubjectName
from kafkapy.compat.confluent_kafka.schema_registry.error import SchemaRegistryError
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from kafkapy.errors import ConfigError

_DEFAULTS: dict[str, Any] = {
    "auto.register.schemas": True,
    "normalize.schemas": False,
    "use.schema.id": None,
    "use.latest.version": False,
    "subject.name.strategy": None,
    "subject.name.strategy.type": None,
}
_WRITE_MODES = ("WRITE", "WRITEREAD")
_TYPES = {"TOPIC": "TOPIC", "RECORD": "RECORD", "TOPIC_RECORD": "TOPIC_RECORD", "ASSOCIATED": "TOPIC"}


def serializer_options(
    conf: Mapping[str, Any] | None, more: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the arguments of SchemaSerializer that a configuration describes, and the values of some further keys.

    `more` has the further keys with their defaults, which only one language has. Raises ValueError for an unknown key,
    for a value of a wrong type, and for keys that exclude each other.
    """
    values = {**_DEFAULTS, **(more or {}), **(conf or {})}
    unknown = sorted(set(values) - set(_DEFAULTS) - set(more or {}))
    if unknown:
        raise ValueError(f"Unrecognized properties: {', '.join(unknown)}")
    for key in ("auto.register.schemas", "normalize.schemas", "use.latest.version"):
        if not isinstance(values[key], bool):
            raise ValueError(f"{key} must be a boolean value")
    if values["use.latest.version"] and values["auto.register.schemas"]:
        raise ValueError("cannot enable both use.latest.version and auto.register.schemas")
    strategy = values["subject.name.strategy"]
    if strategy is not None and not callable(strategy):
        raise ValueError("subject.name.strategy must be callable")
    options = {
        "auto_register": values["auto.register.schemas"],
        "use_latest": values["use.latest.version"],
        "schema_id": values["use.schema.id"],
        "normalize": values["normalize.schemas"],
        "subject_name": _adapted(strategy)
        if strategy is not None
        else _TYPES[str(values["subject.name.strategy.type"] or "TOPIC")],
    }
    return options, {key: values[key] for key in more or ()}


def _adapted(strategy: Callable[..., Any]) -> SubjectName:
    def name(topic: str, part: str, record: str) -> str:
        field = MessageField.KEY if part == KEY else MessageField.VALUE
        return str(strategy(SerializationContext(topic, field), record or None))

    return name


class Serde:
    """Two serializers or deserializers, for keys and for values; the context of a call selects one of them."""

    __slots__ = ("_key", "_make", "_value")

    def __init__(self, make: Callable[[bool], Any]) -> None:
        self._make = make
        self._key: Any = None
        self._value: Any = make(False)

    def select(self, ctx: SerializationContext | None) -> Any:
        """Returns the object for keys if the field of the context is KEY, and otherwise the object for values."""
        if ctx is not None and ctx.field == MessageField.KEY:
            if self._key is None:
                self._key = self._make(True)
            return self._key
        return self._value

    def close(self) -> None:
        """Does nothing: the client of the registry is closed by its owner."""


class BaseSerializer(Serde):
    """The base of confluent-kafka's serializers."""

    __slots__ = ()

    def serialize(self, value: Any, ctx: SerializationContext | None) -> bytes | None:
        """Returns the frame and the data of a value. Raises SerializationError and SchemaRegistryError."""
        serializer: SchemaSerializer = self.select(ctx)
        with translated():
            return serializer("" if ctx is None else ctx.topic, value)


class BaseDeserializer(Serde):
    """The base of confluent-kafka's deserializers."""

    __slots__ = ()

    def deserialize(self, data: bytes | None, ctx: SerializationContext | None) -> Any:
        """Returns the value of data, whose schema is in the data or in a header."""
        deserializer: SchemaDeserializer = self.select(ctx)
        headers: Any = None if ctx is None or ctx.headers is None else ctx.headers
        if isinstance(headers, Mapping):
            headers = list(headers.items())
        with translated():
            return deserializer.decode("" if ctx is None else ctx.topic, data, headers)


@contextmanager
def translated() -> Iterator[None]:
    """Returns a context that raises confluent-kafka's exceptions instead of those of `kafkapy.client.schema`."""
    try:
        yield
    except (SchemaMismatch, WrongFrame) as error:
        raise SerializationError(str(error)) from error
    except ConfigError as error:
        raise ValueError(str(error)) from error
    except RegistryFailure as error:
        if error.status < 0:
            raise OSError(str(error)) from error
        raise SchemaRegistryError(error.status, error.code, str(error)) from error


def check_rules(schema: Any) -> None:
    """Raises ValueError for a schema with rules that would have to be executed when data are written."""
    rules = (schema.rule_set or {}) if schema is not None else {}
    for each in [*(rules.get("domainRules") or ()), *(rules.get("encodingRules") or ())]:
        if each.get("mode") in _WRITE_MODES and not each.get("disabled"):
            raise ValueError(f"the rule {each.get('name')} of the schema cannot be executed by kafkapy's serializers")
