"""Keys and values of the coordinators' topics: `__consumer_offsets`, `__transaction_state`, `__share_group_state`.

    key    record type (int16) | body, always in its first version
    value  version (int16) | body

The record type determines the value; each coordinator counts its types from 0.
"""

from enum import Enum
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.wire import Reader, Writer
from kafkapy.protocol.messages.coordinator_records import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS
from kafkapy.protocol.record_frame import UnknownRecordError, decode_version_prefixed, encode_version_prefixed


class Coordinator(Enum):
    """The record types of each coordinator: a member is a coordinator, and its value maps each record type to the
    classes of the key and the value."""

    GROUP = GROUP_RECORDS
    TRANSACTION = TRANSACTION_RECORDS
    SHARE = SHARE_RECORDS


KEY_CLASSES = frozenset(key_class for coordinator in Coordinator for key_class, _ in coordinator.value.values())


def encode_coordinator(message: Message, version: int = 0) -> bytes:
    """Returns the encoded key or value of a record.

    `version` is the version of a value. A key is always encoded in its first version, after its record type.
    """
    if type(message) not in KEY_CLASSES:
        return encode_version_prefixed(message, version)
    writer = Writer()
    writer.write_int16(type(message).API_KEY)
    writer.write_raw(message.encode(type(message).LOWEST_VERSION))
    return writer.getvalue()


def decode_coordinator_key(data: Any, coordinator: Coordinator = Coordinator.GROUP) -> Message:
    """Returns the decoded key of a record; its class attribute API_KEY is the record type.

    Raises UnknownRecordError for an unknown record type.
    """
    reader = Reader(data)
    key_type = reader.read_int16()
    key_class, _ = _classes(key_type, coordinator)
    message = key_class.read(reader, key_class.LOWEST_VERSION)
    reader.finish()
    return message


def decode_coordinator_value(key_type: int, data: Any, coordinator: Coordinator = Coordinator.GROUP) -> Message:
    """Returns the decoded value of a record whose key has the type `key_type`.

    Raises UnknownRecordError for an unknown type or version.
    """
    return decode_version_prefixed(_classes(key_type, coordinator)[1], data)


def _classes(key_type: int, coordinator: Coordinator) -> tuple[type[Message], type[Message]]:
    classes: tuple[type[Message], type[Message]] | None = coordinator.value.get(key_type)
    if classes is None:
        raise UnknownRecordError(f"{coordinator.name.lower()} coordinator record of unknown type {key_type}")
    return classes
