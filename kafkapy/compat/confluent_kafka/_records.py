"""The records and partitions of confluent-kafka: Message, Messages, TopicPartition, Uuid."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from typing import Any

from kafkapy._core.client.fetched_records import ConsumerRecord, RecordView
from kafkapy.compat.confluent_kafka._constants import OFFSET_INVALID, TIMESTAMP_NOT_AVAILABLE
from kafkapy.compat.confluent_kafka._errors import KafkaError

Headers = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]]


class _Fields:
    """The content of a Message without a ConsumerRecord: a delivery report, or a message that was changed.

    The attributes have the names of ConsumerRecord's attributes, so that a Message reads its content from
    a ConsumerRecord and from a `_Fields` in the same way.
    """

    __slots__ = (
        "delivery_count",
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    topic: str | None
    partition: int | None
    offset: int | None
    key: Any
    value: Any
    headers: Any
    timestamp: int
    timestamp_type: int
    leader_epoch: int | None
    delivery_count: int | None


class Message(RecordView):
    """A record that was consumed or delivered, or an error of the consumer (`error()` is not None then).

    A message of a consumer reads its content from the record that the consumer has decoded, without a copy.
    """

    __slots__ = ()

    _record: ConsumerRecord | _Fields
    _error: KafkaError | None
    _latency: float | None

    def __init__(
        self,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: Any = None,
        value: Any = None,
        headers: Headers | None = None,
        error: KafkaError | None = None,
        timestamp: tuple[int, int] | None = None,
        latency: float | None = None,
        leader_epoch: int | None = None,
        delivery_count: int | None = None,
    ) -> None:
        fields = self._record = _Fields()
        fields.topic, fields.partition, fields.offset = topic, partition, offset
        fields.key, fields.value, fields.headers = key, value, headers
        kind, fields.timestamp = (TIMESTAMP_NOT_AVAILABLE, 0) if timestamp is None else timestamp
        fields.timestamp_type = kind - 1  # of a record in the log; -1 without a timestamp
        fields.leader_epoch, fields.delivery_count = leader_epoch, delivery_count
        self._error, self._latency = error, latency

    deserialized_key = RecordView.key
    deserialized_value = RecordView.value

    def headers(self) -> list[tuple[str, Any]] | Any:
        """Returns the headers as a list of pairs, None if the record has none."""
        headers = self._record.headers
        return list(headers) if headers.__class__ is tuple and headers else headers or None

    def timestamp(self) -> tuple[int, int]:
        """Returns the kind of the timestamp and the timestamp in ms since 1970.

        The kind is TIMESTAMP_NOT_AVAILABLE, TIMESTAMP_CREATE_TIME or TIMESTAMP_LOG_APPEND_TIME.
        """
        record = self._record
        return record.timestamp_type + 1, record.timestamp

    def latency(self) -> float | None:
        """Returns the seconds from `produce` to the acknowledgement; None for a consumed record."""
        return self._latency

    def leader_epoch(self) -> int | None:
        """Returns the epoch of the leader that has written the record, None if it is not known."""
        epoch = self._record.leader_epoch
        return None if epoch is None or epoch < 0 else epoch

    def delivery_count(self) -> int | None:
        """Returns how often a share group has delivered the record; None if the consumer is not a share consumer."""
        return self._record.delivery_count or None

    def set_topic(self, topic: str) -> None:
        """Replaces the topic."""
        self._changed().topic = topic

    def set_headers(self, headers: Any) -> None:
        """Replaces the headers."""
        self._changed().headers = headers

    def set_key(self, key: Any) -> None:
        """Replaces the key."""
        self._changed().key = key

    def set_value(self, value: Any) -> None:
        """Replaces the value."""
        self._changed().value = value

    def set_error(self, error: KafkaError | None) -> None:
        """Replaces the error; None removes it."""
        self._error = error

    def __len__(self) -> int:
        value = self.value()
        return 0 if value is None else len(value)

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Message) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _content(self) -> tuple[Any, ...]:
        record = self._record
        place = (record.topic, record.partition, record.offset, record.key, record.value)
        return (*place, self.headers(), self.timestamp(), self._error)

    def _changed(self) -> _Fields:
        """Returns the content as a `_Fields`, which can be changed.

        The first call copies the consumer's record, and the copy replaces it in this message.
        """
        record = self._record
        if record.__class__ is not _Fields:
            fields = _Fields()
            for name in _Fields.__slots__:
                setattr(fields, name, getattr(record, name))
            self._record = fields
        return self._record  # type: ignore[return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        record = self._record
        content = (record.topic, record.partition, record.offset, record.key, record.value, self.headers())
        more = (self._error, self.timestamp(), self._latency, self.leader_epoch(), self.delivery_count())
        return Message, (*content, *more)


def error_message(
    error: KafkaError, topic: str | None = None, partition: int | None = None, offset: int | None = None
) -> Message:
    """Returns the message by which a consumer reports an error; its value is the text of the error, in UTF-8."""
    return Message(topic, partition, offset, value=error.str().encode(), error=error)


class Messages:
    """The messages of one poll of a share consumer, a sequence that cannot be changed."""

    __slots__ = ("_records",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._records = list(messages)

    def records(self) -> list[Message]:
        """Returns the messages as a new list."""
        return list(self._records)

    def count(self) -> int:
        """Returns the number of messages."""
        return len(self._records)

    def is_empty(self) -> bool:
        """Returns whether there is no message."""
        return not self._records

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._records)

    def __getitem__(self, index: int | slice) -> Message | Messages:
        return Messages(self._records[index]) if isinstance(index, slice) else self._records[index]

    def __repr__(self) -> str:
        return f"Messages({self._records!r})"


class TopicPartition:
    """A partition, with an offset and metadata for a commit, and the error of an operation on it.

    Two TopicPartitions are equal if they name the same partition. `partition` and `offset` can be changed.
    """

    __slots__ = ("_error", "_leader_epoch", "_metadata", "_topic", "offset", "partition")

    def __init__(
        self,
        topic: str,
        partition: int = -1,
        offset: int = OFFSET_INVALID,
        metadata: str | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"argument 1 must be str, not {type(topic).__name__}")
        self._topic = topic
        self.partition = partition
        self.offset = offset
        self._metadata = metadata
        self._leader_epoch = leader_epoch if leader_epoch is not None and leader_epoch >= 0 else None
        self._error: KafkaError | None = None

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self._topic

    @property
    def metadata(self) -> str | None:
        """The text that is committed with the offset; None without a text."""
        return self._metadata

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that has written the record before the offset, None if it is not known."""
        return self._leader_epoch

    @property
    def error(self) -> KafkaError | None:
        """The error of the operation that has returned this object, None after a success."""
        return self._error

    def __repr__(self) -> str:
        return (
            f"TopicPartition{{topic={self._topic},partition={self.partition},offset={self.offset},"
            f"leader_epoch={self._leader_epoch},error={None if self._error is None else self._error.str()}}}"
        )

    def _place(self) -> tuple[str, int]:
        return self._topic, self.partition

    def __hash__(self) -> int:
        return hash(self._place())

    def __eq__(self, other: object) -> bool:
        return self._place() == other._place() if isinstance(other, TopicPartition) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._place() < other._place() if isinstance(other, TopicPartition) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._place() <= other._place() if isinstance(other, TopicPartition) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._place() > other._place() if isinstance(other, TopicPartition) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._place() >= other._place() if isinstance(other, TopicPartition) else NotImplemented


def with_error(partition: TopicPartition, error: KafkaError | None) -> TopicPartition:
    """Sets the error of a partition and returns the partition."""
    partition._error = error
    return partition


class Uuid:
    """An id of 128 bits, such as a topic's. Its text is URL-safe base64 without padding, as Kafka shows it."""

    __slots__ = ("_bytes",)

    def __init__(self, most_significant_bits: int, least_significant_bits: int) -> None:
        self._bytes = b"".join(
            (each & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "big") for each in (most_significant_bits, least_significant_bits)
        )

    def get_most_significant_bits(self) -> int:
        """Returns the upper half as a signed integer."""
        return int.from_bytes(self._bytes[:8], "big", signed=True)

    def get_least_significant_bits(self) -> int:
        """Returns the lower half as a signed integer."""
        return int.from_bytes(self._bytes[8:], "big", signed=True)

    def __str__(self) -> str:
        return urlsafe_b64encode(self._bytes).decode().rstrip("=")

    __repr__ = __str__

    def __int__(self) -> int:
        return int.from_bytes(self._bytes, "big")

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __eq__(self, other: object) -> bool:
        return self._bytes == other._bytes if isinstance(other, Uuid) else NotImplemented


def uuid_of(content: bytes) -> Uuid:
    """Returns the Uuid with these 16 bytes."""
    return Uuid(int.from_bytes(content[:8], "big"), int.from_bytes(content[8:], "big"))
