"""Delayed records: the headers that ask for a delay, and the form in which pending records are stored. This module has
no state and does no I/O.
"""

from __future__ import annotations

from typing import Any

from kafkapy.client.reliable.chain_headers import number_of
from kafkapy.client.reliable.records import Output, RecordHeaders, SourceRecord
from kafkapy.named_tuple import NamedTuple

DELAY_TOPIC = "__kafkapy_delay"
DELIVER_AT = "kafkapy.deliver-at"
DELAY_MS = "kafkapy.delay-ms"
TARGET = "kafkapy.target"
ID = "kafkapy.delay-id"
CANCEL = "kafkapy.delay-cancel"
_NAMES = frozenset((DELIVER_AT, DELAY_MS, TARGET, ID, CANCEL))
MOST_ID_BYTES = 1024


class InvalidDelay(Exception):
    """A record cannot be delayed because of its headers."""


class DelayedRecord(NamedTuple):
    """A record to be sent to `target` at `due_ms` (ms since 1970); `state_key` is its key in the topic of pending
    records.
    """

    state_key: bytes
    due_ms: int
    target: str
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders

    @property
    def is_replaceable(self) -> bool:
        """Returns whether the record has an id, by which it can be cancelled or replaced."""
        return self.state_key[:1] == b"i"

    def output(self) -> Output:
        """Returns the record as it is delivered."""
        return Output(self.target, self.value, self.key, self.headers)


class Cancellation(NamedTuple):
    """The request to forget the pending record with this key."""

    state_key: bytes


def delayed(
    target: str,
    value: bytes | None,
    key: bytes | None = None,
    *,
    at_ms: int | None = None,
    delay_ms: int | None = None,
    record_id: str | None = None,
    headers: RecordHeaders = (),
    topic: str = DELAY_TOPIC,
) -> Output:
    """Returns a record for the delay service, which will deliver the record's content to the topic `target`.

    The content is delivered at `at_ms` (ms since 1970), or `delay_ms` after the record's timestamp. A later record with
    the same key and `record_id` replaces this one while it is pending; `cancellation` removes it. Raises ValueError
    unless exactly one of the times is given.
    """
    if (at_ms is None) is (delay_ms is None):
        raise ValueError("Exactly one of at_ms and delay_ms is required")
    own: list[tuple[str, bytes | None]] = [(TARGET, target.encode())]
    own.append((DELIVER_AT, str(at_ms).encode()) if at_ms is not None else (DELAY_MS, str(delay_ms).encode()))
    if record_id is not None:
        own.append((ID, record_id.encode()))
    return Output(topic, value, key, (*headers, *own))


def cancellation(record_id: str, key: bytes | None = None, *, topic: str = DELAY_TOPIC) -> Output:
    """Returns the record to send to cancel a pending record with this id; `key` must be that record's key."""
    return Output(topic, None, key, ((ID, record_id.encode()), (CANCEL, b"")))


def parse(record: SourceRecord, most_delay_ms: int) -> DelayedRecord | Cancellation:
    """Returns the delayed record, or the cancellation, that a record of the delay topic requests in its headers.

    Raises InvalidDelay with the reason for invalid headers, and for a delay of more than `most_delay_ms`.
    """
    headers = dict(record.headers)
    record_id = headers.get(ID)
    if record_id is not None and not 0 < len(record_id) <= MOST_ID_BYTES:
        raise InvalidDelay(f"The header {ID} must have 1 to {MOST_ID_BYTES} bytes")
    if CANCEL in headers:
        if record_id is None:
            raise InvalidDelay(f"A cancellation needs the header {ID}")
        return Cancellation(_state_key(record, record_id))
    try:
        target = (headers.get(TARGET) or b"").decode()
    except UnicodeDecodeError:
        target = ""
    if not target or target == record.topic:
        raise InvalidDelay(f"The header {TARGET} does not name a topic to deliver to")
    try:
        if DELIVER_AT in headers:
            due_ms = number_of(headers[DELIVER_AT])
        else:
            due_ms = max(record.timestamp, 0) + number_of(headers.get(DELAY_MS))
    except ValueError as error:
        raise InvalidDelay(f"Neither {DELIVER_AT} nor {DELAY_MS} has a number of milliseconds: {error}") from error
    if due_ms - record.timestamp > most_delay_ms:
        raise InvalidDelay(f"The delay of {due_ms - record.timestamp} ms exceeds the limit of {most_delay_ms} ms")
    plain = tuple(each for each in record.headers if each[0] not in _NAMES)
    return DelayedRecord(_state_key(record, record_id), due_ms, target, record.key, record.value, plain)


def _state_key(record: SourceRecord, record_id: bytes | None) -> bytes:
    """Returns the key under which a pending record is stored.

    The key consists of the record's id and its own key. For a record without an id it has the record's offset, which is
    unique in the partition.
    """
    if record_id is None:
        return b"o%d" % record.offset
    key = record.key
    return b"i%d:" % len(record_id) + record_id + (b"" if key is None else b"k" + key)


def offset_of_state_key(state_key: bytes) -> int | None:
    """Returns the offset that a key of a pending record has been made of; None if the record has an id."""
    return int(state_key[1:]) if state_key[:1] == b"o" else None


def pack(record: DelayedRecord) -> bytes:
    """Encodes a pending record as the bytes that are stored."""
    import msgpack

    packed: bytes = msgpack.packb(tuple(record))
    return packed


def unpack(content: bytes) -> DelayedRecord:
    """Decodes a stored pending record. Raises ValueError if the bytes are not a pending record."""
    import msgpack

    try:
        fields: Any = msgpack.unpackb(content)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise ValueError(f"The bytes are not a pending record: {error}") from error
    if not isinstance(fields, list) or len(fields) != len(DelayedRecord._fields):
        raise ValueError("The bytes are not a pending record")
    state_key, due_ms, target, key, value, headers = fields
    return DelayedRecord(state_key, due_ms, target, key, value, tuple((name, content) for name, content in headers))
