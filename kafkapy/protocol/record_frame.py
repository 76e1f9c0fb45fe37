"""The encoding of messages in records: the frame of a metadata record, and the version prefix of other values.

metadata record value   frame version 1 | api key | version | body      the first three as unsigned varints
version-prefixed value  version (int16) | body                          coordinator values, transaction markers,
                                                                        the embedded consumer protocol
"""

from typing import Any, TypeVar

from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.wire import Reader, Writer
from kafkapy.protocol.messages.metadata_records import METADATA_RECORDS

FRAME_VERSION = 1
M = TypeVar("M", bound=Message)


class UnknownRecordError(ValueError):
    """Raised for a record with an unknown type or version, because newer software wrote it or because it is a record of
    another kind."""


def encode_metadata_record(message: Message, version: int) -> bytes:
    """Returns `message` encoded as the value of a record of the metadata log.

    Raises UnknownRecordError if `message` is not a metadata record, and EncodeError if it cannot be written in this
    version.
    """
    key: int = type(message).API_KEY
    if METADATA_RECORDS.get(key) is not type(message):
        raise UnknownRecordError(f"{type(message).__name__} is not a metadata record")
    frame = Writer()
    frame.write_unsigned_varint(FRAME_VERSION)
    frame.write_unsigned_varint(key)
    frame.write_unsigned_varint(version)
    frame.write_raw(message.encode(version))
    return frame.getvalue()


def decode_metadata_record(value: Any) -> Message:
    """Returns the message in the value of a record of the metadata log.

    Raises UnknownRecordError, which names the type or version, or ProtocolViolation for damaged bytes.
    """
    reader = Reader(value)
    frame_version = reader.read_unsigned_varint()
    if frame_version != FRAME_VERSION:
        raise UnknownRecordError(f"metadata record with frame version {frame_version}, we know {FRAME_VERSION}")
    key, version = reader.read_unsigned_varint(), reader.read_unsigned_varint()
    record_class = METADATA_RECORDS.get(key)
    if record_class is None:
        raise UnknownRecordError(f"metadata record with unknown api key {key}, version {version}")
    if version not in record_class.VERSIONS:
        raise UnknownRecordError(f"{record_class.__name__} (api key {key}) in unknown version {version}")
    message: Message = record_class.read(reader, version)
    reader.finish()
    return message


def encode_version_prefixed(message: Message, version: int) -> bytes:
    """Returns the number `version` (two bytes), followed by the message encoded in that version.

    Raises EncodeError if the message cannot be written in this version.
    """
    writer = Writer()
    writer.write_int16(version)
    writer.write_raw(message.encode(version))
    return writer.getvalue()


def decode_version_prefixed(message_class: type[M], data: Any) -> M:
    """Decodes `data`, a version number and a message encoded in that version, and returns the message.

    Raises UnknownRecordError if `message_class` does not have the version, and ProtocolViolation for malformed data.
    """
    reader = Reader(data)
    version = reader.read_int16()
    if version not in message_class.VERSIONS:
        raise UnknownRecordError(f"{message_class.__name__} in unknown version {version}")
    message = message_class.read(reader, version)
    reader.finish()
    return message
