"""The formatters of console-consumer: Apache Kafka's, by their class names, and JSON."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kafkapy.client import ConsumerRecord
from kafkapy.errors import ConfigError, ProtocolViolation
from kafkapy.protocol.coordinator_record import Coordinator, decode_coordinator_key, decode_coordinator_value
from kafkapy.protocol.message_json import json_text, message_json
from kafkapy.protocol.record_frame import UnknownRecordError
from kafkapy.tools.option import ToolError, UsageError, unknown_keys
from kafkapy.tools.record_text import Decoder, find_text_deserializer

log = logging.getLogger("kafkapy.tools.console_consumer")

FORMATTER_PROPERTIES = """ print.timestamp=true|false
 print.key=true|false
 print.offset=true|false
 print.epoch=true|false
 print.partition=true|false
 print.headers=true|false
 print.value=true|false
 key.separator=<between the parts, a tab by default>
 line.separator=<after a record, a line feed by default>
 headers.separator=<between headers, a comma by default>
 null.literal=<printed for null>
 key.deserializer, value.deserializer, headers.deserializer=<class or module:name>"""
_PARTS = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
FORMATTER_KEYS = (
    *(f"print.{part}" for part in _PARTS),
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
    "key.deserializer",
    "value.deserializer",
    "headers.deserializer",
)
# Apache Kafka passes keys with these prefixes to the deserializers; our deserializers have no configuration.
_DESERIALIZER_PREFIXES = ("key.deserializer.", "value.deserializer.", "headers.deserializer.")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
# Kafka's name of the type of a record without a timestamp, which is in the oldest message format.
_WITHOUT_TYPE = "NoTimestampType"


class MessageFormatter(Protocol):
    """A formatter of records. Not thread-safe."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Stores the formatter's properties. Called once, before the first record."""
        ...

    def format(self, record: ConsumerRecord) -> bytes:
        """Returns the bytes to print for a record, including its line end; b"" prints nothing."""
        ...


class DefaultFormatter:
    """A formatter that prints the fields of a record that the properties select, with a separator between them.

    It prints the placeholder NOT_PRESENT for the epoch, and for the delivery count of a record that was not read by a
    share group, as Apache Kafka does if they are not known.
    """

    def configure(self, properties: Mapping[str, str]) -> None:
        def is_set(name: str, default: bool = False) -> bool:
            return properties[name].strip().lower() == "true" if name in properties else default

        given = [name for name in properties if not name.startswith(_DESERIALIZER_PREFIXES)]
        for warning in unknown_keys(given, FORMATTER_KEYS):
            log.warning("%s", warning)
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_separator = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null_literal = properties.get("null.literal", "null").encode()
        self._key_decoder = _decoder(properties.get("key.deserializer"))
        self._value_decoder = _decoder(properties.get("value.deserializer"))
        self._headers_decoder = _decoder(properties.get("headers.deserializer"))
        self._columns: list[Callable[[ConsumerRecord], bytes]] = []
        columns: tuple[Callable[[ConsumerRecord], bytes], ...] = (
            self._timestamp,
            lambda record: b"Partition:%d" % record.partition,
            lambda record: b"Offset:%d" % record.offset,
            lambda record: b"Delivery:%d" % record.delivery_count if record.delivery_count else b"Delivery:NOT_PRESENT",
            lambda record: b"Epoch:NOT_PRESENT",
            self._headers,
            lambda record: self._decoded(record.key, self._key_decoder),
            lambda record: self._decoded(record.value, self._value_decoder),
        )
        for name, column in zip(_PARTS, columns, strict=True):
            if is_set(f"print.{name}", default=name == "value"):
                self._columns.append(column)

    def format(self, record: ConsumerRecord) -> bytes:
        if not self._columns:
            return b""
        return self._separator.join([column(record) for column in self._columns]) + self._line_separator

    def _timestamp(self, record: ConsumerRecord) -> bytes:
        if record.timestamp < 0:
            return b"NO_TIMESTAMP"
        return f"{TIMESTAMP_TYPES[record.timestamp_type]}:{record.timestamp}".encode()

    def _headers(self, record: ConsumerRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        shown = [f"{name}:".encode() + self._decoded(value, self._headers_decoder) for name, value in record.headers]
        return self._headers_separator.join(shown)

    def _decoded(self, data: bytes | None, decoder: Decoder | None) -> bytes:
        data = self._null_literal if data is None else data
        return data if decoder is None else decoder(data).encode()


def _decoder(name: str | None) -> Decoder | None:
    """Returns the deserializer that `name` names; None without a name.

    An unknown name is logged as an error, as in Kafka, and None is returned.
    """
    if name is None:
        return None
    try:
        return find_text_deserializer(name)
    except ConfigError as error:
        log.error("Unable to instantiate a deserializer from %s: %s", name, error)
        return None


class NoOpFormatter:
    """A formatter that prints nothing, for measurements."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Ignores the properties, because this formatter has none."""

    def format(self, record: ConsumerRecord) -> bytes:
        return b""


class CoordinatorFormatter:
    """A formatter that prints records of a coordinator's internal topic as JSON, and nothing for other records.

    Only records whose key has one of the `types` are printed; the type of a key is the version number of its schema.
    """

    def __init__(self, coordinator: Coordinator, types: frozenset[int]) -> None:
        self._coordinator = coordinator
        self._types = types

    def configure(self, properties: Mapping[str, str]) -> None:
        """Ignores the properties, because this formatter has none."""

    def format(self, record: ConsumerRecord) -> bytes:
        if record.key is None:
            return b""
        try:
            key = decode_coordinator_key(record.key, self._coordinator)
            kind = key.API_KEY
            if kind not in self._types:
                return b""
            shown: dict[str, Any] = {
                "key": {"type": kind, "data": message_json(key, key.LOWEST_VERSION)},
                "value": None,
            }
            if record.value is not None:
                version = int.from_bytes(record.value[:2], "big")
                value = decode_coordinator_value(kind, record.value, self._coordinator)
                shown["value"] = {"version": version, "data": message_json(value, version)}
        except UnknownRecordError:
            return b""
        except (ProtocolViolation, ValueError) as error:
            raise ToolError(f"Could not read record at offset {record.offset} due to: {error}") from None
        return json_text(shown).encode()


class JsonFormatter:
    """The formatter of `--json`, which prints one object per line with all fields.

    Bytes that are not UTF-8 are printed in base64.
    """

    def configure(self, properties: Mapping[str, str]) -> None:
        """Ignores the properties, because this formatter has none."""

    def format(self, record: ConsumerRecord) -> bytes:
        shown = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": TIMESTAMP_TYPES[record.timestamp_type] if record.timestamp_type >= 0 else _WITHOUT_TYPE,
            "headers": [[name, _json_text(value)] for name, value in record.headers],
            "key": _json_text(record.key),
            "value": _json_text(record.value),
        }
        if record.delivery_count:
            shown["deliveryCount"] = record.delivery_count
        return json_text(shown).encode() + b"\n"


def _json_text(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


_OFFSET_TYPES = frozenset((0, 1))
_GROUP_METADATA_TYPES = frozenset((2,))
_SHARE_GROUP_TYPES = frozenset((10, 11, 12, 13, 14, 15))
_PACKAGE = "org.apache.kafka.tools.consumer."
_MAKERS: dict[str, Callable[[], MessageFormatter]] = {
    "DefaultMessageFormatter": DefaultFormatter,
    "LoggingMessageFormatter": DefaultFormatter,
    "NoOpMessageFormatter": NoOpFormatter,
    "OffsetsMessageFormatter": lambda: CoordinatorFormatter(Coordinator.GROUP, _OFFSET_TYPES),
    "GroupMetadataMessageFormatter": lambda: CoordinatorFormatter(Coordinator.GROUP, _GROUP_METADATA_TYPES),
    "TransactionLogMessageFormatter": lambda: CoordinatorFormatter(Coordinator.TRANSACTION, frozenset((0,))),
    "ShareGroupMessageFormatter": lambda: CoordinatorFormatter(Coordinator.GROUP, _SHARE_GROUP_TYPES),
    "group.share.ShareGroupStateMessageFormatter": lambda: CoordinatorFormatter(Coordinator.SHARE, frozenset((0, 1))),
}
FORMATTERS = {_PACKAGE + name: maker for name, maker in _MAKERS.items()}
# Names of these classes before Kafka 3.9 and 4.0, which scripts and books still use.
_OLD_NAMES = {
    "kafka.coordinator.GroupMetadataManager$OffsetsMessageFormatter": "OffsetsMessageFormatter",
    "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter": "OffsetsMessageFormatter",
    "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter": "GroupMetadataMessageFormatter",
    "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter": "TransactionLogMessageFormatter",
    "kafka.tools.DefaultMessageFormatter": "DefaultMessageFormatter",
    "kafka.tools.LoggingMessageFormatter": "LoggingMessageFormatter",
    "kafka.tools.NoOpMessageFormatter": "NoOpMessageFormatter",
}


def make_formatter(name: str, properties: Mapping[str, str]) -> MessageFormatter:
    """Returns the formatter of console-consumer that Kafka's class `name` stands for, configured with `properties`.

    Raises UsageError for an unknown class.
    """
    maker = FORMATTERS.get(_PACKAGE + _OLD_NAMES[name] if name in _OLD_NAMES else name)
    if maker is None:
        raise UsageError(name)
    formatter = maker()
    formatter.configure(properties)
    return formatter
