"""The base of the serializers and deserializers: subjects, registration, frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from kafkapy.client.schema.bounded_cache import BoundedCache
from kafkapy.client.schema.model import RegisteredSchema, Schema
from kafkapy.client.schema.registry_client import RegistryClient
from kafkapy.client.schema.subject_names import KEY, VALUE, SubjectName, find_strategy
from kafkapy.client.schema.wire_format import Frame, Headers, frame_prefix, guid_header, header_name, read_frame
from kafkapy.errors import ConfigError

CACHE_SIZE = 1000


class SchemaSerializer(ABC):
    """Serializes values by a schema of the registry. Thread-safe.

    auto_register: True registers the schema; otherwise it must be registered already, or RegistryFailure is raised.
    use_latest: writes with the latest version of the subject instead of the given schema.
    schema_id: writes with the schema that has this id.
    normalize: has the registry normalize the schema.
    subject_name: the function that forms the subject's name, or TOPIC, RECORD or TOPIC_RECORD.
    is_key: True if the serializer is for keys, False if it is for values.

    A serializer is the value of `key.serializer` or `value.serializer`: `serializer(topic, value)` returns a
    frame, which contains the id of the schema and the data. `encode` returns the data without a frame; the schema's
    GUID is in a header, which it returns too.
    """

    schema_type = ""

    def __init__(
        self,
        registry: RegistryClient,
        *,
        auto_register: bool = True,
        use_latest: bool = False,
        schema_id: int | None = None,
        normalize: bool = False,
        subject_name: str | SubjectName = "TOPIC",
        is_key: bool = False,
    ) -> None:
        if use_latest and schema_id is not None:
            raise ConfigError("use_latest and schema_id exclude each other")
        self._registry = registry
        self._auto_register = auto_register and not use_latest and schema_id is None
        self._use_latest = use_latest
        self._schema_id = schema_id
        self._normalize = normalize
        self._subject_name = find_strategy(subject_name)
        self._part = KEY if is_key else VALUE
        # topic -> the schema to write with, and the bytes before the data
        self._registered: dict[str, tuple[RegisteredSchema, bytes]] = {}
        self._made: BoundedCache[str, Any] = BoundedCache(100)
        self._last_made: tuple[Schema, Any] | None = None

    def __call__(self, topic: str, value: Any) -> bytes | None:
        """Serializes a value as bytes: a frame, which names the schema by its id, and the data. Returns None for None.

        Raises SchemaMismatch for a value that does not fit the schema, and RegistryFailure if a request to the registry
        fails.
        """
        if value is None:
            return None
        found = self._registered.get(topic)
        if found is None:
            found = self._find(topic)
        return found[1] + self.indexes() + self.serialize(value, found[0].schema)

    def encode(self, topic: str, value: Any) -> tuple[bytes | None, list[tuple[str, bytes]]]:
        """Serializes a value for a record that has a header with the schema's GUID.

        Returns the data without a frame and a list with the header; (None, []) for None.
        """
        if value is None:
            return None, []
        found, _ = self._registered.get(topic) or self._find(topic)
        header = guid_header(found.guid or found.schema.guid, self.indexes())
        return self.serialize(value, found.schema), [(header_name(self._part), header)]

    def _find(self, topic: str) -> tuple[RegisteredSchema, bytes]:
        """Returns the schema with which to write the values of a topic, and the bytes of the frame that names it by its
        id.

        Registers the schema if the serializer was configured to do so. The frame has no message indexes of Protobuf.
        """
        found: RegisteredSchema
        if self._schema_id is not None:
            found = RegisteredSchema(self._registry.schema(self._schema_id), self._schema_id)
        else:
            subject = self._subject_name(topic, self._part, self.record_name())
            if self._use_latest:
                found = self._registry.version(subject)
            elif self._auto_register:
                found = self._registry.register(subject, self.own_schema(), normalize=self._normalize)
            else:
                found = self._registry.look_up(subject, self.own_schema(), normalize=self._normalize)
        if not (self._use_latest or self._schema_id is not None):
            found = found._replace(schema=self.own_schema())  # the text that this program has written
        entry = (found, frame_prefix(found.id))
        if len(self._registered) < CACHE_SIZE:
            self._registered[topic] = entry
        return entry

    def _made_of(self, schema: Schema, make: Callable[[], Any]) -> Any:
        """Returns the result of `make()`, which prepares a schema, such as its parsed form; cached by the schema's
        content.

        If the schema object is that of the last call, the result is returned without computing a digest of the content.
        """
        last = self._last_made
        if last is not None and last[0] is schema:
            return last[1]
        found = self._made.get_or_make(schema.content_key, make)
        self._last_made = (schema, found)
        return found

    @abstractmethod
    def own_schema(self) -> Schema:
        """Returns the schema that the program has given."""

    @abstractmethod
    def record_name(self) -> str:
        """Returns the full name of the schema's type, such as "com.example.Order"; "" if the type has no name."""

    def indexes(self) -> bytes:
        """Returns the encoded message indexes that follow the schema's id if the schema is one of Protobuf; otherwise
        b"".
        """
        return b""

    @abstractmethod
    def serialize(self, value: Any, schema: Schema) -> bytes:
        """Encodes a value by `schema`. Raises SchemaMismatch if the value does not fit it."""


class SchemaDeserializer(ABC):
    """Deserializes data that name their schema in the registry. Thread-safe.

    A deserializer is the value of `key.deserializer` or `value.deserializer`: `deserializer(topic, data)`; `decode`
    reads the record's headers as well.
    """

    has_indexes = False
    format = ""

    def __init__(self, registry: RegistryClient, *, is_key: bool = False) -> None:
        self._registry = registry
        self._part = KEY if is_key else VALUE
        self._parsed: BoundedCache[int | str, Any] = BoundedCache(CACHE_SIZE)

    def __call__(self, topic: str, data: bytes | None) -> Any:
        """Deserializes data that begin with a frame, which names their schema; returns None for None.

        Raises WrongFrame for data without a frame, SchemaMismatch for data that do not fit the schema, and
        RegistryFailure if a request to the registry fails.
        """
        return self.decode(topic, data, None)

    def decode(self, topic: str, data: bytes | None, headers: Headers | None) -> Any:
        """Deserializes data whose schema is named by one of the record's headers or, without it, by the frame before
        the data.

        Returns None if `data` is None.
        """
        if data is None:
            return None
        frame = read_frame(data, self._part, headers, has_indexes=self.has_indexes)
        key: int | str = frame.guid if frame.id is None else frame.id  # type: ignore[assignment]
        parsed = self._parsed.get_or_make(key, lambda: self.parse(self.schema_of(frame)))
        return self.deserialize(data, frame, parsed)

    def schema_of(self, frame: Frame) -> Schema:
        """Returns the schema whose id or GUID is in a frame; requests it from the registry unless it is cached."""
        if frame.guid is not None:
            return self._registry.schema_of_guid(frame.guid, format=self.format)
        assert frame.id is not None
        return self._registry.schema(frame.id, format=self.format)

    @abstractmethod
    def parse(self, schema: Schema) -> Any:
        """Returns the parsed form of a schema. The caller passes it to `deserialize` as `parsed`."""

    @abstractmethod
    def deserialize(self, data: bytes, frame: Frame, parsed: Any) -> Any:
        """Decodes the data to a value; they begin at the position `frame.start` of `data`.

        `parsed` is the result of `parse` for the schema that the frame names.
        """
