"""The schema's id or GUID in a record: in front of the data, or in a header."""

from __future__ import annotations

import io
import uuid
from collections.abc import Mapping
from typing import Any

from kafkapy.client.schema.errors import WrongFrame
from kafkapy.client.schema.model import PROTOBUF
from kafkapy.client.schema.wire_format import (
    GUID_FRAME_BYTES,
    GUID_MAGIC,
    ID_FRAME_BYTES,
    ID_MAGIC,
    KEY_HEADER,
    VALUE_HEADER,
    decode_indexes,
    encode_indexes,
    frame_prefix,
    guid_header,
)
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext, SerializationError


class SchemaId:
    """The id and the GUID of a schema, of which at least one is known, and the message indexes of a Protobuf schema.

    The message indexes identify the type of the message among the types that the schema's file defines.
    """

    __slots__ = ("guid", "id", "message_indexes", "schema_type")

    def __init__(
        self,
        schema_type: str,
        schema_id: int | None = None,
        guid: str | None = None,
        message_indexes: list[int] | None = None,
    ) -> None:
        self.schema_type = schema_type
        self.id = schema_id
        self.guid = None if guid is None else uuid.UUID(guid)
        self.message_indexes = message_indexes

    def from_bytes(self, payload: io.BytesIO) -> io.BytesIO:
        """Reads the id or the GUID, and the message indexes of Protobuf, from a stream and stores them in this object.

        Returns the stream, which is then positioned at the data. Raises SerializationError if the bytes have another
        form.
        """
        start = payload.tell()
        data = payload.getbuffer()[start:]
        try:
            magic = data[0] if data else -1
            if magic == ID_MAGIC and len(data) >= ID_FRAME_BYTES:
                self.id, position = int.from_bytes(data[1:ID_FRAME_BYTES], "big"), ID_FRAME_BYTES
            elif magic == GUID_MAGIC and len(data) >= GUID_FRAME_BYTES:
                self.guid, position = uuid.UUID(bytes=bytes(data[1:GUID_FRAME_BYTES])), GUID_FRAME_BYTES
            else:
                shown = bytes(data[:ID_FRAME_BYTES]).hex() or "nothing"
                raise SerializationError(f"the data do not begin with the id or the GUID of a schema, but with {shown}")
            if self.schema_type == PROTOBUF:
                indexes, position = decode_indexes(bytes(data), position)
                self.message_indexes = list(indexes)
        except WrongFrame as error:
            raise SerializationError(str(error)) from error
        finally:
            data.release()
        payload.seek(start + position)
        return payload

    def id_to_bytes(self) -> bytes:
        """Returns the bytes with the schema's id that are put in front of the data.

        Raises SerializationError if the id is not known.
        """
        if self.id is None:
            raise SerializationError("the id of the schema is not known")
        return frame_prefix(self.id) + self._indexes()

    def guid_to_bytes(self) -> bytes:
        """Returns the value of the header that identifies the schema by its GUID.

        Raises SerializationError if the GUID is not known.
        """
        if self.guid is None:
            raise SerializationError("the GUID of the schema is not known")
        return guid_header(str(self.guid), self._indexes())

    def _indexes(self) -> bytes:
        return b"" if self.message_indexes is None else encode_indexes(self.message_indexes)


def _header_name(ctx: SerializationContext) -> str:
    return KEY_HEADER if ctx.field == MessageField.KEY else VALUE_HEADER


def header_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> bytes:
    """Adds a header with the schema's GUID to the headers of `ctx`, and returns the data unchanged.

    Raises SerializationError if `ctx` has no headers.
    """
    headers: Any = None if ctx is None else ctx.headers
    if ctx is None or headers is None:
        raise SerializationError("the GUID of the schema needs a SerializationContext with headers")
    name, value = _header_name(ctx), schema_id.guid_to_bytes()
    if isinstance(headers, list):
        headers.append((name, value))
    elif isinstance(headers, dict):
        headers[name] = value
    else:
        raise SerializationError(f"the headers must be a list or a dict, not a {type(headers).__name__}")
    return payload


def prefix_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> bytes:
    """Returns `payload` with the bytes that contain the schema's id put in front of it."""
    return schema_id.id_to_bytes() + payload


def dual_schema_id_deserializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> io.BytesIO:
    """Stores the id or GUID of the schema in `schema_id`, and returns a stream positioned at the data.

    Reads the id or GUID from the header of `ctx` if there is one, otherwise from the beginning of `payload`.
    """
    headers: Any = None if ctx is None else ctx.headers
    if ctx is not None and headers:
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        value = next((value for name, value in pairs if name == _header_name(ctx)), None)
        if value is not None:
            schema_id.from_bytes(io.BytesIO(value))
            return io.BytesIO(payload)
    return prefix_schema_id_deserializer(payload, ctx, schema_id)


def prefix_schema_id_deserializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> io.BytesIO:
    """Reads the schema's id or GUID from the beginning of `payload`, and stores it in `schema_id`.

    Returns a stream of `payload` that is positioned at the data after the id or GUID.
    """
    return schema_id.from_bytes(io.BytesIO(payload))
