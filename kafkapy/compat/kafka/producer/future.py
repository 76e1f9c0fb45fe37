"""The future of one record, with the interface of kafka-python's `kafka.producer.future`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kafkapy.compat.kafka.errors import KafkaTimeoutError, translate
from kafkapy.compat.kafka.future import Future, call
from kafkapy.compat.kafka.structs import TopicPartition
from kafkapy.errors import KafkapyError

if TYPE_CHECKING:
    from kafkapy._core.client import record_accumulator
    from kafkapy._core.client.record_accumulator import DeliveryFuture


class RecordMetadata(NamedTuple):
    """The partition and the offset at which a record was written, and its timestamp in ms since 1970.

    The sizes are the numbers of bytes of the serialized key, value and headers; they are -1 for a key or value that is
    null, and for a record without headers. `checksum` is None.
    """

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    serialized_header_size: int


class FutureRecordMetadata(Future):
    """The outcome of sending one record, read from the delivery future of kafkapy's client. Thread-safe."""

    __slots__ = ("_delivery", "_headers")

    def __init__(self, delivery: DeliveryFuture, headers: Any = None) -> None:
        self._delivery = delivery
        self._headers = headers

    @property
    def is_done(self) -> bool:
        return self._delivery.done()

    @property
    def value(self) -> RecordMetadata | None:
        if not self._delivery.done() or self._delivery.exception() is not None:
            return None
        return self._converted(self._delivery.result())

    @property
    def exception(self) -> Any:
        error = self._delivery.exception() if self._delivery.done() else None
        return None if error is None else translate(error)

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Returns the metadata of the record; blocks until it is delivered or has failed, at most `timeout` seconds.

        Raises KafkaTimeoutError after that time, or the error of the delivery.
        """
        try:
            return self._converted(self._delivery.result(timeout))
        except KafkapyError as error:
            if not self._delivery.done():
                raise KafkaTimeoutError(f"The record was not acknowledged within {timeout} s") from error
            raise translate(error) from error

    def add_callback(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        bound = partial(f, *args, **kwargs) if args or kwargs else f

        def notify(metadata: record_accumulator.RecordMetadata | None, error: BaseException | None) -> None:
            if metadata is not None:
                call(bound, self._converted(metadata))

        self._delivery.add_done_callback(notify)
        return self

    def add_errback(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        bound = partial(f, *args, **kwargs) if args or kwargs else f

        def notify(metadata: record_accumulator.RecordMetadata | None, error: BaseException | None) -> None:
            if error is not None:
                call(bound, translate(error))

        self._delivery.add_done_callback(notify)
        return self

    def _converted(self, metadata: record_accumulator.RecordMetadata) -> RecordMetadata:
        return RecordMetadata(
            metadata.topic,
            metadata.partition,
            TopicPartition(metadata.topic, metadata.partition),
            metadata.offset,
            metadata.timestamp,
            None,
            metadata.serialized_key_size,
            metadata.serialized_value_size,
            header_size(self._headers),
        )


class FailedSend(Future):
    """The future of a record whose topic could not be looked up; it has failed already."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.failure(error)

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Raises at once the error because of which the record could not be sent; `timeout` has no effect."""
        raise self.exception


def header_size(headers: Any) -> int:
    """Returns the number of bytes in the names and values of headers; -1 without headers."""
    if not headers:
        return -1
    return sum(len(name.encode()) + len(value or b"") for name, value in headers)
