"""The frames with which the serializers of schema registries name the schema of their data.

    in the value     0 | id, 4 bytes, big-endian | [message indexes, Protobuf only] | data
    in a header      1 | GUID, 16 bytes | [message indexes]                 the value is only the data

The headers are `__key_schema_id` and `__value_schema_id`. Message indexes are the path to a Protobuf message within its
file: a count and the indexes as zigzag varints; the single byte 0 stands for the first message of the file.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from kafkapy.client.schema.errors import WrongFrame
from kafkapy.client.schema.subject_names import KEY
from kafkapy.named_tuple import NamedTuple

ID_MAGIC, GUID_MAGIC = 0, 1
ID_FRAME_BYTES = 5
GUID_FRAME_BYTES = 17
KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
_MOST_INDEXES = 100
_INDEX_BYTES = 5

Headers = Iterable[tuple[str, bytes | None]]


class Frame(NamedTuple):
    """The frame of some data, which names their schema. One of the fields for the schema's id and its GUID is None.

    `start` is the position in the bytes at which the data begin. `indexes` is the path to a Protobuf message in its
    file.
    """

    id: int | None
    guid: str | None
    start: int
    indexes: tuple[int, ...] = ()


def frame_prefix(schema_id: int) -> bytes:
    """Returns the frame that precedes the data, with the schema's id and without message indexes."""
    return b"\0" + schema_id.to_bytes(4, "big")


def guid_header(guid: str, indexes: bytes = b"") -> bytes:
    """Returns the value of the header that names a schema by its GUID, with encoded message indexes of Protobuf."""
    return b"\1" + uuid.UUID(guid).bytes + indexes


def header_name(part: str) -> str:
    """Returns the name of the header that has the GUID of a key's or value's schema; `part` is "key" or "value"."""
    return KEY_HEADER if part == KEY else VALUE_HEADER


def read_frame(data: bytes, part: str, headers: Headers | None = None, *, has_indexes: bool = False) -> Frame:
    """Returns the frame in a record's header if it has one, otherwise the frame at the beginning of `data`.

    `data` is the record's key or value, as `part` says: "key" or "value". With `has_indexes` message indexes of
    Protobuf follow the id or GUID. Raises WrongFrame for bytes without a frame.
    """
    name = header_name(part)
    for key, value in headers or ():
        if key == name and value and value[0] == GUID_MAGIC:
            if len(value) < GUID_FRAME_BYTES:
                raise WrongFrame(f"the header {name} has {len(value)} bytes instead of {GUID_FRAME_BYTES}")
            guid = str(uuid.UUID(bytes=bytes(value[1:GUID_FRAME_BYTES])))
            indexes = decode_indexes(value, GUID_FRAME_BYTES)[0] if has_indexes else ()
            return Frame(None, guid, 0, indexes)
    if len(data) < ID_FRAME_BYTES or data[0] != ID_MAGIC:
        shown = bytes(data[:ID_FRAME_BYTES]).hex()
        raise WrongFrame(f"the data do not begin with the byte 0 and the id of a schema: {shown or 'they are empty'}")
    start = ID_FRAME_BYTES
    indexes = ()
    if has_indexes:
        indexes, start = decode_indexes(data, start)
    return Frame(int.from_bytes(data[1:ID_FRAME_BYTES], "big"), None, start, indexes)


def encode_indexes(indexes: Iterable[int]) -> bytes:
    """Encodes the message indexes of Protobuf, which are the path to a message in its file."""
    numbers = list(indexes)
    if numbers == [0]:
        return b"\0"
    return b"".join(_varint(each) for each in (len(numbers), *numbers))


def decode_indexes(data: bytes, position: int) -> tuple[tuple[int, ...], int]:
    """Returns the message indexes that begin at `position`, and the position after them.

    Raises WrongFrame if the bytes at `position` do not encode message indexes.
    """
    count, position = _read_varint(data, position)
    if count == 0:
        return (0,), position
    if not 0 < count <= _MOST_INDEXES:
        raise WrongFrame(f"{count} message indexes; accepted are 1 to {_MOST_INDEXES}")
    found = []
    for _ in range(count):
        index, position = _read_varint(data, position)
        found.append(index)
    return tuple(found), position


def _varint(value: int) -> bytes:
    left = value << 1 if value >= 0 else (-value << 1) - 1
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    found = shift = 0
    for each in data[position : position + _INDEX_BYTES]:
        position += 1
        found |= (each & 0x7F) << shift
        if not each & 0x80:
            return found >> 1 ^ -(found & 1), position
        shift += 7
    raise WrongFrame("a message index has no end")
