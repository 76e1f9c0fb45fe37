"""The decoders of kafka-dump-log, which convert keys and values to text, and records of Kafka's own topics to JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.wire import Reader
from kafkapy.errors import ProtocolViolation
from kafkapy.protocol.coordinator_record import Coordinator, decode_coordinator_key, decode_coordinator_value
from kafkapy.protocol.message_json import json_text, message_json
from kafkapy.protocol.messages.data_records import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafkapy.protocol.record_frame import UnknownRecordError, decode_metadata_record
from kafkapy.tools.option import ToolError
from kafkapy.tools.record_text import Decoder


class KeyAndValue(Protocol):
    """The part of a record that decoders use."""

    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


# Returns the texts of key and value; None is not printed.
RecordDecoder = Callable[[Any], tuple[str | None, str | None]]


def text_decoder(key_decoder: Decoder, value_decoder: Decoder) -> RecordDecoder:
    """Returns a decoder of records that converts keys by `key_decoder` and values by `value_decoder`."""

    def decode(record: KeyAndValue) -> tuple[str | None, str | None]:
        key = None if record.key is None else key_decoder(record.key)
        return key, None if record.value is None else value_decoder(record.value)

    return decode


def coordinator_decoder(coordinator: Coordinator) -> RecordDecoder:
    """Returns the decoder of records of `__consumer_offsets`, `__transaction_state` or `__share_group_state`."""

    def decode(record: KeyAndValue) -> tuple[str | None, str | None]:
        if record.key is None:
            raise ToolError(
                f"Failed to decode message at offset {record.offset} using the specified decoder (message had a "
                "missing key)"
            )
        try:
            return _coordinator_record(record.key, record.value, coordinator)
        except UnknownRecordError:
            kind = int.from_bytes(record.key[:2], "big", signed=True)
            return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
        except (ProtocolViolation, ValueError) as error:
            return f"Error at offset {record.offset}, skipping. {error}", None

    return decode


def _coordinator_record(key: bytes, value: bytes | None, coordinator: Coordinator) -> tuple[str, str]:
    key_message = decode_coordinator_key(key, coordinator)
    kind = key_message.API_KEY
    shown_key = {"type": str(kind), "data": message_json(key_message, key_message.LOWEST_VERSION)}
    if value is None:
        return json_text(shown_key), "<DELETE>"
    version = int.from_bytes(value[:2], "big", signed=True)
    data = message_json(decode_coordinator_value(kind, value, coordinator), version)
    if data.get("protocolType") == "consumer":
        _decode_members(decode_coordinator_value(kind, value, coordinator), data)
    return json_text(shown_key), json_text({"version": str(version), "data": data})


def _decode_members(group: Any, data: dict[str, Any]) -> None:
    """Decodes the subscription and assignment of each member of `group` in `data`, the JSON form of `group`.

    A field whose bytes cannot be decoded is not changed.
    """
    for member, shown in zip(group.members, data["members"], strict=True):
        for name, message_class in (
            ("subscription", ConsumerProtocolSubscription),
            ("assignment", ConsumerProtocolAssignment),
        ):
            decoded = _embedded(message_class, getattr(member, name))
            if decoded is not None:
                shown[name] = decoded


def _embedded(message_class: type[Message], content: bytes) -> dict[str, Any] | None:
    """Returns the JSON form of the message in `content`, which begins with the message's version (int16).

    Returns None if the bytes are not a message of this class.
    """
    try:
        reader = Reader(content)
        version = reader.read_int16()
        if version not in message_class.VERSIONS:
            return None
        return message_json(message_class.read(reader, version), version)
    except ProtocolViolation:
        return None


def decode_cluster_metadata(record: KeyAndValue) -> tuple[str | None, str | None]:
    """Returns key (always None) and value of a record of the metadata log or of a snapshot, the value as JSON.

    If the value cannot be decoded, an error message is returned instead of JSON, as in Kafka.
    """
    try:
        value = record.value or b""
        message = decode_metadata_record(value)
        reader = Reader(value)
        reader.read_unsigned_varint()
        reader.read_unsigned_varint()
        version = reader.read_unsigned_varint()
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", type(message).__name__).upper()
        return None, json_text({"type": name, "version": version, "data": message_json(message, version)})
    except (ProtocolViolation, ValueError) as error:
        return None, f"Error at {record.offset}, skipping. {error}"
