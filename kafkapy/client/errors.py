"""The exceptions of the client that are not error codes of the protocol.

All exceptions that the client raises for a broker, a configuration or a call at the wrong time derive from
`KafkapyError`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.errors import ApiError, ConfigError, Error, KafkapyError
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import OffsetAndEpoch, TopicPartition

__all__ = [
    "AcknowledgementError",
    "ApiError",
    "AuthenticationError",
    "ClientClosed",
    "ConcurrentUse",
    "ConfigError",
    "KafkapyError",
    "LogTruncated",
    "NoOffsetForPartition",
    "NotSubscribed",
    "RequestTimedOut",
    "RowFailure",
    "SubscriptionError",
    "TransactionAborted",
    "TransactionError",
    "UndeliveredRows",
    "UnreadableRecords",
    "WakeupError",
]


class RequestTimedOut(ApiError, TimeoutError):
    """No response arrived before the time limit, because a broker is slow or cannot be reached.

    It is a TimeoutError, and an ApiError with the code REQUEST_TIMED_OUT.
    """

    def __init__(self, message: str) -> None:
        super().__init__(Error.REQUEST_TIMED_OUT, message)
        self.errno = self.strerror = None  # set by OSError from two arguments

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[type[RequestTimedOut], tuple[str]]:
        return type(self), (self.message,)


class AuthenticationError(ApiError):
    """A broker and this client cannot authenticate each other: by SASL or by a TLS certificate.

    It is an ApiError with the code SASL_AUTHENTICATION_FAILED, or with UNSUPPORTED_SASL_MECHANISM or ILLEGAL_SASL_STATE
    if this is the error in the broker's response. It is not retried, because the configuration has to change first.
    After a failed TLS handshake, `__cause__` is the ssl.SSLError.
    """

    def __init__(self, message: str, error: Error = Error.SASL_AUTHENTICATION_FAILED) -> None:
        super().__init__(error, message)

    def __reduce__(self) -> tuple[type[AuthenticationError], tuple[str, Error]]:
        return type(self), (self.message, self.error)


class ClientClosed(KafkapyError, RuntimeError):
    """A method was called on a producer, consumer or admin client after `close`."""


class ConcurrentUse(KafkapyError, RuntimeError):
    """A method of a consumer was called while another thread was in a method of the same consumer."""


class NotSubscribed(KafkapyError, RuntimeError):
    """A consumer was polled without a subscription and without assigned partitions."""


class SubscriptionError(KafkapyError, RuntimeError):
    """An application has mixed a consumer's subscription to topics with a manual assignment of partitions."""


class AcknowledgementError(KafkapyError, RuntimeError):
    """A share consumer's record cannot be acknowledged now, or was not acknowledged before the next poll."""


class UnreadableRecords(KafkapyError):
    """A consumer cannot return a record that a deserializer refuses, or a share consumer records that it has acquired.

    `ranges` has the first and last offset of each range of records in `partition`. `__cause__` is the error of the
    deserializer, or for a share consumer an ApiError with CORRUPT_MESSAGE or INVALID_RECORD. The position of a consumer
    stays at the record: a `seek` to the next offset skips it. A share consumer releases a record that cannot be
    deserialized, and rejects a damaged batch, unless the application acknowledges the records otherwise.
    """

    def __init__(self, partition: TopicPartition, ranges: list[tuple[int, int]], cause: Exception) -> None:
        text = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in ranges)
        super().__init__(f"The records of {partition} at offsets {text} cannot be read: {cause}")
        self.partition = partition
        self.ranges = ranges


class RowFailure(NamedTuple):
    """Rows of a table that `Producer.send_arrow` has sent and that were not delivered.

    `rows` are their numbers, in ascending order; row 0 is the first one of the table.
    """

    topic: str
    partition: int
    rows: Sequence[int]
    error: BaseException


class UndeliveredRows(ApiError):
    """Rows of a table that `Producer.send_arrow` has sent were not delivered.

    Its code is that of the first failed row's error, and this error is its `__cause__`. `failures` has all failed rows.
    """

    def __init__(self, error: Error, message: str, failures: Sequence[RowFailure] = ()) -> None:
        super().__init__(error, message)
        self.failures = failures


class TransactionError(KafkapyError, RuntimeError):
    """A transactional method was called in a state that does not allow it."""


class TransactionAborted(ApiError):
    """A record was not sent, because the application has aborted its transaction.

    It is an ApiError with the code TRANSACTION_ABORTABLE.
    """

    def __init__(self, message: str = "The transaction was aborted") -> None:
        super().__init__(Error.TRANSACTION_ABORTABLE, message)

    def __reduce__(self) -> tuple[type[TransactionAborted], tuple[str]]:
        return type(self), (self.message,)


class WakeupError(KafkapyError):
    """`Consumer.wakeup` was called while, or before, the consumer waited."""


class NoOffsetForPartition(ApiError):
    """A partition has no valid position, and `auto.offset.reset` is none.

    `partition` is the partition. If `is_out_of_range` is True, its position is outside of its log; otherwise it has no
    position.
    """

    def __init__(self, partition: TopicPartition, message: str, *, is_out_of_range: bool = False) -> None:
        super().__init__(Error.OFFSET_OUT_OF_RANGE, message)
        self.partition = partition
        self.is_out_of_range = is_out_of_range


class LogTruncated(NoOffsetForPartition):
    """A new leader's log lacks records before a consumer's position, and `auto.offset.reset` is none (KIP-320).

    `agreed` is the offset, with its leader epoch, from which the logs differ; None if it is not known.
    """

    def __init__(self, partition: TopicPartition, position: int, agreed: OffsetAndEpoch | None) -> None:
        hint = f"; it diverges from offset {agreed.offset} on" if agreed is not None else ""
        super().__init__(partition, f"Truncated partition {partition}: position {position} no longer exists{hint}")
        self.agreed = agreed
