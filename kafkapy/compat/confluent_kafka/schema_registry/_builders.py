"""The builders of serializers and deserializers, which also make the registry's client."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from kafkapy.compat.confluent_kafka.schema_registry._async_client import AsyncSchemaRegistryClient
from kafkapy.compat.confluent_kafka.schema_registry._async_serde import AsyncBaseSerde
from kafkapy.compat.confluent_kafka.schema_registry._client import SchemaRegistryClient
from kafkapy.compat.confluent_kafka.schema_registry._model import Schema
from kafkapy.compat.confluent_kafka.schema_registry._serde import BaseSerde
from kafkapy.compat.confluent_kafka.schema_registry.rule_registry import RuleRegistry
from kafkapy.compat.confluent_kafka.serialization import DeserializerBuilder, SerializationContext, SerializerBuilder

_log = logging.getLogger(__name__)
Serde = TypeVar("Serde", bound=BaseSerde)
AsyncSerde = TypeVar("AsyncSerde", bound=AsyncBaseSerde)
AnySerde: TypeAlias = type[BaseSerde] | type[AsyncBaseSerde]
# The parameter of a builder -> that of the serializer or deserializer, where they differ.
_NAMES = {
    "schema": "schema_str",
    "serializer_config": "conf",
    "deserializer_config": "conf",
    "rule_config": "rule_conf",
}
_OF_THE_BUILDER = ("schema_registry_config", "schema_registry_client", "serializer_init", "deserializer_init")
_TWO_CLIENTS = "Cannot specify both a Schema Registry client and a configuration; use one or the other"


def build_serde(
    schema_registry_client: SchemaRegistryClient | None,
    schema_registry_conf: Mapping[str, Any] | None,
    construct: Callable[[SchemaRegistryClient | None], Serde],
    init: Callable[[Serde], None] | None = None,
) -> Serde:
    """Returns the serde (serializer or deserializer) that `construct` makes for a client of the registry.

    The client is `schema_registry_client`, or is made from `schema_registry_conf` and then closed with the serde.
    Raises ValueError if both arguments are given. `init` is called with the new serde. If `construct` or `init` raises
    an exception, the client or serde that was made here is closed.
    """
    if schema_registry_client is not None and schema_registry_conf is not None:
        raise ValueError(_TWO_CLIENTS)
    if schema_registry_conf is None:
        serde = construct(schema_registry_client)
    else:
        client = SchemaRegistryClient.new_client(schema_registry_conf)
        try:
            serde = construct(client)
        except BaseException:
            client.close()
            raise
        serde.own_schema_registry_client()
    try:
        if init is not None:
            init(serde)
    except BaseException:
        serde.close()
        raise
    return serde


async def async_build_serde(
    schema_registry_client: AsyncSchemaRegistryClient | None,
    schema_registry_conf: Mapping[str, Any] | None,
    construct: Callable[[AsyncSchemaRegistryClient | None], Awaitable[AsyncSerde]],
    init: Callable[[AsyncSerde], Awaitable[None]] | None = None,
) -> AsyncSerde:
    """Returns the serializer or deserializer ("serde") that `construct`, a coroutine function, makes for a client.

    The client of the registry is `schema_registry_client`, or is made from `schema_registry_conf` and then closed with
    the serde. Raises ValueError if both are given. Then awaits `init(serde)`. If `construct` or `init` raises an
    exception, closes the client or serde that was made here.
    """
    if schema_registry_client is not None and schema_registry_conf is not None:
        raise ValueError(_TWO_CLIENTS)
    if schema_registry_conf is None:
        serde = await construct(schema_registry_client)
    else:
        client = AsyncSchemaRegistryClient.new_client(schema_registry_conf)
        try:
            serde = await construct(client)
        except BaseException:
            await client.aclose()
            raise
        serde.own_schema_registry_client()
    try:
        if init is not None:
            await init(serde)
    except BaseException:
        await serde.aclose()
        raise
    return serde


class Building:
    """The base of the builders of serializers and deserializers ("serdes").

    `_serde` is the class of the serde, and `_parameters` are the names of its settings. Each setting has a method that
    sets it and returns the builder, so that calls can be chained.
    """

    _serde: ClassVar[AnySerde]
    _parameters: ClassVar[tuple[str, ...]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(self._parameters):
            raise TypeError(f"{type(self).__name__} takes up to {len(self._parameters)} arguments, not {len(args)}")
        given = dict(zip(self._parameters, args, strict=False))
        unknown = [name for name in kwargs if name not in self._parameters or name in given]
        if unknown:
            raise TypeError(f"{type(self).__name__} does not take the arguments {', '.join(unknown)}")
        self._values: dict[str, Any] = {**given, **kwargs}

    def _set(self, name: str, value: Any) -> Self:
        self._values[name] = value
        return self

    def set_schema_registry_config(self, schema_registry_conf: Mapping[str, Any]) -> Self:
        """Sets the configuration of the registry's client.

        The client is made and closed together with the serializer or deserializer.
        """
        return self._set("schema_registry_config", schema_registry_conf)

    def set_schema_registry_client(self, schema_registry_client: Any) -> Self:
        """Sets the registry's client, which the caller closes."""
        return self._set("schema_registry_client", schema_registry_client)

    def set_rule_config(self, rule_conf: Mapping[str, Any]) -> Self:
        """Sets the configuration that the executors and actions of rules receive."""
        return self._set("rule_config", rule_conf)

    def set_rule_registry(self, rule_registry: RuleRegistry) -> Self:
        """Sets the registry of rules, which replaces the global one."""
        return self._set("rule_registry", rule_registry)

    def build(self, conf: dict[str, Any], is_key: bool) -> Any:
        """Returns the pair (serde, copy of `conf`); the copy has all keys of `conf`.

        `conf` is the configuration of the producer or consumer. `is_key` has no effect.
        """
        client, config, init = self._taken()
        return build_serde(client, config, self._construct, init), dict(conf)

    def _taken(self) -> tuple[Any, Any, Any]:
        """Returns (client, configuration, init): three settings of the builder, each None if it was not set.

        `client` is the registry's client, `configuration` is the one from which a client is to be made, and `init` is
        the function to call with the new serde. Raises ValueError if a builder for Protobuf has no message type.
        """
        if "message_type" in self._parameters and self._values.get("message_type") is None:
            raise ValueError("a builder for Protobuf requires a message type; call set_message_type()")
        init = self._values.get("serializer_init") or self._values.get("deserializer_init")
        return self._values.get("schema_registry_client"), self._values.get("schema_registry_config"), init

    def _construct(self, client: Any) -> Any:
        values = {_NAMES.get(name, name): each for name, each in self._values.items() if name not in _OF_THE_BUILDER}
        if "schema" in self._parameters:
            values.setdefault("schema_str", None)
        make: Any = self._serde
        return make(schema_registry_client=client, **values)


class AsyncBuilding(Building):
    """The base of the builders whose `build` is a coroutine."""

    def build(self, conf: dict[str, Any], is_key: bool) -> Any:
        """Returns a coroutine, whose result is the pair (serde, copy of `conf`); the copy has all keys of `conf`.

        `is_key` has no effect.
        """
        return self._build(conf)

    async def _build(self, conf: dict[str, Any]) -> Any:
        client, config, init = self._taken()
        return await async_build_serde(client, config, self._construct, init), dict(conf)


class SerializerOptions(Building, SerializerBuilder):
    """The base of the builders of serializers: the settings that all serializers have."""

    def set_serializer_config(self, serializer_conf: Mapping[str, Any]) -> Self:
        """Sets the configuration of the serializer."""
        return self._set("serializer_config", serializer_conf)

    def set_serializer_init(self, serializer_init: Callable[[Any], Any]) -> Self:
        """Sets a function that is called with the new serializer, before the serializer is used."""
        return self._set("serializer_init", serializer_init)


class DeserializerOptions(Building, DeserializerBuilder):
    """The base of the builders of deserializers: the settings that all deserializers have."""

    def set_deserializer_config(self, deserializer_conf: Mapping[str, Any]) -> Self:
        """Sets the configuration of the deserializer."""
        return self._set("deserializer_config", deserializer_conf)

    def set_deserializer_init(self, deserializer_init: Callable[[Any], Any]) -> Self:
        """Sets a function that is called with the new deserializer, before the deserializer is used."""
        return self._set("deserializer_init", deserializer_init)


class SchemaOption(Building):
    """The base of the builders of serializers and deserializers whose schema can be set."""

    def set_schema(self, schema_str: str | Schema) -> Self:
        """Sets the schema, as text or as a Schema."""
        return self._set("schema", schema_str)


class MessageTypeOption(Building):
    """The base of the builders for Protobuf, which need the class of the messages."""

    def set_message_type(self, msg_type: Any) -> Self:
        """Sets the generated class of the messages; without this call `build` raises ValueError."""
        return self._set("message_type", msg_type)

    def _construct(self, client: Any) -> Any:
        values = dict(self._values)
        kind = values.pop("message_type")
        rest = {_NAMES.get(name, name): each for name, each in values.items() if name not in _OF_THE_BUILDER}
        make: Any = self._serde
        return make(kind, schema_registry_client=client, **rest)


class ToDictOption(Building):
    """The base of the builders whose serializer can convert an application's object to a value."""

    def set_to_dict(self, to_dict: Callable[[Any, SerializationContext], Any]) -> Self:
        """Sets the function `to_dict(object, ctx)`, which converts an application's object to a serializable value."""
        return self._set("to_dict", to_dict)


class FromDictOption(Building):
    """The base of the builders whose deserializer can convert a value to an application's object."""

    def set_from_dict(self, from_dict: Callable[[Any, SerializationContext], Any]) -> Self:
        """Sets the function `from_dict(value, ctx)`, which converts a deserialized value to an application's object."""
        return self._set("from_dict", from_dict)


class RecordNameOption(Building):
    """The base of the builders whose deserializer can return the name of a record within a union."""

    def set_return_record_name(self, return_record_name: bool) -> Self:
        """Sets whether a record within a union is returned as a pair of its name and its value."""
        return self._set("return_record_name", return_record_name)


class JsonEncodeOption(Building):
    """The base of the builders whose serializer has a replaceable function that encodes JSON."""

    def set_json_encode(self, json_encode: Callable[[Any], Any]) -> Self:
        """Sets the function that returns the JSON of a value as str or bytes, such as `json.dumps`."""
        return self._set("json_encode", json_encode)


class JsonDecodeOption(Building):
    """The base of the builders whose deserializer has a replaceable function that decodes JSON."""

    def set_json_decode(self, json_decode: Callable[[Any], Any]) -> Self:
        """Sets the function that parses bytes as JSON and returns the value, such as `json.loads`."""
        return self._set("json_decode", json_decode)
