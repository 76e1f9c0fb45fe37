"""The headers of the retry chain, with the origin, attempts, due time and error of a record. The chain consists of a
topic, its retry topics, and its topic of dead letters.

Each record in a retry topic and each dead letter has them under three names: kafkapy's own, whose values are text;
those of Spring for Apache Kafka (`KafkaHeaders`, `RetryTopicHeaders`), whose numbers are big-endian; and those of Kafka
Connect's dead letters (KIP-298), whose values are text. The origin is read from any of them.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping

from kafkapy.client.reliable.records import Delivery, RecordHeaders, SourceRecord
from kafkapy.config.row import INT_MAX, LONG_MAX
from kafkapy.named_tuple import NamedTuple

CHAIN_PREFIX = "kafkapy.retry."
ORIGIN_TOPIC, ORIGIN_PARTITION = CHAIN_PREFIX + "topic", CHAIN_PREFIX + "partition"
ORIGIN_OFFSET, ORIGIN_TIMESTAMP = CHAIN_PREFIX + "offset", CHAIN_PREFIX + "timestamp"
ATTEMPTS, DUE, LEVEL = CHAIN_PREFIX + "attempts", CHAIN_PREFIX + "due-ms", CHAIN_PREFIX + "level"
ERROR, GROUP = CHAIN_PREFIX + "error", CHAIN_PREFIX + "group"
_SPRING = ("kafka_original-", "kafka_exception-", "kafka_dlt-", "retry_topic-")
_CONNECT = "__connect.errors."
# An error must not make a record much larger than its topic permits.
MOST_MESSAGE_BYTES = 1024
MOST_TRACE_BYTES = 4096


class ChainState(NamedTuple):
    """The position of a record in the retry chain; topic, partition, offset and timestamp are those of its original
    record.

    attempts: the number of attempts that have failed. level: 0 in the original topic, n in the n-th retry topic.
    due_ms: the time of the next attempt in ms since 1970. invalid: the headers whose values could not be read and were
    replaced by defaults.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    attempts: int = 0
    level: int = 0
    due_ms: int = 0
    invalid: tuple[str, ...] = ()


class ErrorText(NamedTuple):
    """An error as headers describe it: the name of its class with its module, its message, its traceback."""

    name: str
    message: str
    trace: str = ""


def error_text(error: BaseException) -> ErrorText:
    """Returns the name, message and traceback of an error; message and traceback are limited in length.

    For an error that a child process has reported, these texts are in its attribute `description`, which is returned.
    """
    description = getattr(error, "description", None)
    if isinstance(description, ErrorText):
        return description
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    trace = "".join(traceback.format_exception(error)) if error.__traceback__ is not None else ""
    return ErrorText(name, _limited(str(error), MOST_MESSAGE_BYTES), _limited(trace, MOST_TRACE_BYTES, at_end=True))


def _limited(text: str, size: int, *, at_end: bool = False) -> str:
    encoded = text.encode("utf-8", "replace")  # half of a surrogate pair becomes a question mark
    if len(encoded) <= size:
        return encoded.decode()
    return (encoded[-size:] if at_end else encoded[:size]).decode("utf-8", "ignore")


def is_chain_header(name: str) -> bool:
    """Returns whether a header belongs to a retry chain of kafkapy, Spring or Kafka Connect."""
    return name.startswith((CHAIN_PREFIX, *_SPRING, _CONNECT))


def without_chain(headers: Iterable[tuple[str, bytes | None]]) -> RecordHeaders:
    """Returns the application's own headers: the given ones without those of the retry chain."""
    return tuple(each for each in headers if not is_chain_header(each[0]))


def number_of(value: bytes | None, most: int = LONG_MAX) -> int:
    """Returns the non-negative decimal number in a header. Raises ValueError for anything else, and above `most`."""
    if value is None or not value.isdigit():
        raise ValueError(f"{value!r} is not a number")
    number = int(value)  # raises ValueError for thousands of digits
    if number > most:
        raise ValueError(f"{number} is larger than {most}")
    return number


def state_of(record: SourceRecord) -> ChainState:
    """Returns the position of a record in the chain; without the chain's headers it is the beginning, with no failed
    attempt.

    A header that cannot be read is replaced by its default and named in `invalid`.
    """
    headers = dict(record.headers)
    if ORIGIN_TOPIC not in headers:
        return ChainState(record.topic, record.partition, record.offset, record.timestamp)
    invalid = []
    numbers = {}
    defaults = {  # and the largest number of the field
        ORIGIN_PARTITION: (record.partition, INT_MAX),
        ORIGIN_OFFSET: (record.offset, LONG_MAX),
        ORIGIN_TIMESTAMP: (max(record.timestamp, 0), LONG_MAX),
        ATTEMPTS: (0, INT_MAX),
        LEVEL: (0, INT_MAX),
        DUE: (0, LONG_MAX),
    }
    for name, (default, most) in defaults.items():
        try:
            numbers[name] = number_of(headers.get(name), most)
        except ValueError:
            invalid.append(name)
            numbers[name] = default
    topic = record.topic
    try:
        topic = (headers[ORIGIN_TOPIC] or b"").decode() or topic
    except UnicodeDecodeError:
        invalid.append(ORIGIN_TOPIC)
    return ChainState(
        topic,
        numbers[ORIGIN_PARTITION],
        numbers[ORIGIN_OFFSET],
        numbers[ORIGIN_TIMESTAMP],
        numbers[ATTEMPTS],
        numbers[LEVEL],
        numbers[DUE],
        tuple(invalid),
    )


def delivery_of(record: SourceRecord, state: ChainState) -> Delivery:
    """Returns the Delivery that a handler receives for a record, from the record and its position in the chain."""
    return Delivery(
        state.topic,
        state.partition,
        state.offset,
        state.timestamp,
        record.key,
        record.value,
        without_chain(record.headers),
        state.attempts + 1,
    )


def headers_after_failure(
    headers: RecordHeaders, state: ChainState, error: ErrorText, group: str, *, is_dead: bool
) -> RecordHeaders:
    """Returns the headers of a record that moves on to a retry topic, or to the dead letters if `is_dead`.

    `headers` are the record's present ones, in which the headers of the retry chain are replaced; `state` is the new
    position, `error` the error of the last attempt, and `group` the consumer group that handles the record.
    """
    chain = (*_own(state, error, group), *_spring(state, error, group, is_dead), *_connect(state, error))
    return (*without_chain(headers), *chain)


def headers_behind_key(headers: RecordHeaders, state: ChainState, group: str) -> RecordHeaders:
    """Returns the headers of a record that has not failed, but moves on to wait behind an earlier record with its key.

    They are the record's present headers, with kafkapy's headers of the new position `state`;
    `group` is the consumer group that handles the record.
    """
    own = tuple(each for each in _own(state, ErrorText("", ""), group) if each[0] != ERROR)
    names = {name for name, _ in own}
    return (*(each for each in headers if each[0] not in names), *own)


def _own(state: ChainState, error: ErrorText, group: str) -> RecordHeaders:
    text = {
        ORIGIN_TOPIC: state.topic,
        ORIGIN_PARTITION: state.partition,
        ORIGIN_OFFSET: state.offset,
        ORIGIN_TIMESTAMP: max(state.timestamp, 0),
        ATTEMPTS: state.attempts,
        LEVEL: state.level,
        DUE: state.due_ms,
        ERROR: f"{error.name}: {error.message}",
        GROUP: group,
    }
    return tuple((name, str(value).encode()) for name, value in text.items())


def _spring(state: ChainState, error: ErrorText, group: str, is_dead: bool) -> RecordHeaders:
    """Returns the headers by which Spring's error handling describes the position `state` and the last `error` of a
    record.

    Spring gives the headers of dead letters (`is_dead`) other names than those of records in retry topics. `group` is
    the consumer group that handles the record.
    """
    origin: RecordHeaders = (
        ("topic", state.topic.encode()),
        ("partition", state.partition.to_bytes(4, "big")),
        ("offset", state.offset.to_bytes(8, "big")),
        ("timestamp", state.timestamp.to_bytes(8, "big", signed=True)),
        ("timestamp-type", b"CreateTime"),
    )
    details: RecordHeaders = (
        ("fqcn", error.name.encode()),
        ("message", error.message.encode("utf-8", "replace")),
        ("stacktrace", error.trace.encode("utf-8", "replace")),
    )
    first = "kafka_dlt-" if is_dead else "kafka_"
    found = [(f"{first}original-{name}", value) for name, value in origin]
    found += [(f"{first}exception-{name}", value) for name, value in details]
    found.append(("kafka_dlt-original-consumer-group", group.encode()))
    found.append(("retry_topic-attempts", (state.attempts + (0 if is_dead else 1)).to_bytes(4, "big")))
    found.append(("retry_topic-original-timestamp", _big_integer(max(state.timestamp, 0))))
    if not is_dead:
        found.append(("retry_topic-backoff-timestamp", _big_integer(state.due_ms)))
    return tuple(found)


def _big_integer(number: int) -> bytes:
    """Returns Java's `BigInteger.toByteArray` of a number that is not negative."""
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def _connect(state: ChainState, error: ErrorText) -> RecordHeaders:
    values = {
        "topic": state.topic,
        "partition": state.partition,
        "offset": state.offset,
        "stage": "TASK_PUT",
        "exception.class.name": error.name,
        "exception.message": error.message,
        "exception.stacktrace": error.trace,
    }
    return tuple((_CONNECT + name, str(value).encode("utf-8", "replace")) for name, value in values.items())


class Origin(NamedTuple):
    """The original topic and, if it is known, the partition of a dead letter."""

    topic: str
    partition: int | None = None


def origin_of(headers: RecordHeaders) -> Origin | None:
    """Returns the origin of a dead letter by kafkapy's, Spring's or Connect's headers; None without any of them."""
    found: Mapping[str, bytes | None] = dict(headers)
    for topic_name, partition_name, is_text in (
        (ORIGIN_TOPIC, ORIGIN_PARTITION, True),
        ("kafka_dlt-original-topic", "kafka_dlt-original-partition", False),
        ("kafka_original-topic", "kafka_original-partition", False),
        (_CONNECT + "topic", _CONNECT + "partition", True),
    ):
        topic = found.get(topic_name)
        if not topic:
            continue
        try:
            name = topic.decode()
        except UnicodeDecodeError:
            continue
        return Origin(name, _partition(found.get(partition_name), is_text=is_text))
    return None


def _partition(value: bytes | None, *, is_text: bool) -> int | None:
    if not is_text:
        return int.from_bytes(value, "big") if value is not None and len(value) == 4 else None
    try:
        return number_of(value, INT_MAX)
    except ValueError:
        return None
