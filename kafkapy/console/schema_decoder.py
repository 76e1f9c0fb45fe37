"""Content that was written with a schema of a registry: Avro, JSON Schema and Protobuf as trees of JSON."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafkapy.client.schema import (
    AvroDeserializer,
    JsonDeserializer,
    ProtobufDeserializer,
    RegistryClient,
    RegistryFailure,
    SchemaMismatch,
    WrongFrame,
)
from kafkapy.client.schema.errors import LibraryMissing
from kafkapy.client.schema.model import AVRO, JSON
from kafkapy.client.schema.serde import SchemaDeserializer
from kafkapy.client.schema.wire_format import ID_FRAME_BYTES, ID_MAGIC

REGISTRY_TIMEOUT_S = 3.0
# A registry that cannot be reached is not asked for this time, so that a page of records does not wait for each.
PAUSE_S = 10.0


class SchemaUnknown(Exception):
    """The reason why content cannot be decoded with a schema."""


class SchemaDecoder:
    """Decodes content whose first bytes name a schema of one registry. Any thread may use it."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Makes a decoder for the registry with the address `url`. Raises ConfigError if `url` is not an address."""
        self._registry = RegistryClient(url, timeout_s=REGISTRY_TIMEOUT_S, retries=0)
        self._clock = clock
        self._paused_until_s = float("-inf")
        self._failure = ""
        self._deserializers: dict[str, SchemaDeserializer] = {}

    @staticmethod
    def may_decode(data: bytes) -> bool:
        """Returns whether content begins with a zero byte and a schema's id, as a registry's serializers write it."""
        return len(data) >= ID_FRAME_BYTES and data[0] == ID_MAGIC

    def decode(self, data: bytes, topic: str) -> Any:
        """Decodes a key or value by the schema that it names, and returns a tree of JSON-like values.

        Raises SchemaUnknown, whose text is the reason, if the content cannot be decoded.
        """
        if not self.may_decode(data):
            raise SchemaUnknown("the content does not begin with the number of a schema")
        if self._clock() < self._paused_until_s:
            raise SchemaUnknown(self._failure)
        try:
            schema = self._registry.schema(int.from_bytes(data[1:ID_FRAME_BYTES], "big"))
            value = self._deserializer(schema.type).decode(topic, data, None)
        except RegistryFailure as error:
            if error.status >= 0:
                raise SchemaUnknown(f"the schema registry has refused the request: {error}") from None
            self._failure = f"the schema registry cannot be reached: {error}"
            self._paused_until_s = self._clock() + PAUSE_S
            raise SchemaUnknown(self._failure) from None
        except (LibraryMissing, SchemaMismatch, WrongFrame, RecursionError) as error:
            raise SchemaUnknown(str(error) or "the content is nested too deeply") from None
        return value if schema.type in (AVRO, JSON) else _tree(value)

    def _deserializer(self, kind: str) -> SchemaDeserializer:
        found = self._deserializers.get(kind)
        if found is None:
            makers: dict[str, Callable[[RegistryClient], SchemaDeserializer]]
            makers = {AVRO: AvroDeserializer, JSON: JsonDeserializer}
            found = self._deserializers[kind] = makers.get(kind, ProtobufDeserializer)(self._registry)
        return found


def _tree(message: Any) -> Any:
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message, preserving_proto_field_name=True)
