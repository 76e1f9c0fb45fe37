"""The exceptions of kafka-python's `kafka.errors`.

The classes of the protocol's error codes are made from the table of `kafkapy.errors.Error`: their names are those of
the codes (`UnknownTopicOrPartitionError`), except for those in `_NAMES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafkapy.client.errors import (
    ClientClosed,
    ConcurrentUse,
    LogTruncated,
    NoOffsetForPartition,
    NotSubscribed,
    RequestTimedOut,
    SubscriptionError,
    TransactionAborted,
    TransactionError,
)
from kafkapy.compat.kafka.structs import OffsetAndMetadata, TopicPartition
from kafkapy.errors import ApiError, ConfigError, Error, KafkapyError

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


class KafkaError(Exception):
    """The base class of all exceptions of this package.

    `retriable` says that the same call may succeed later, `invalid_metadata` that the client's view of the cluster is
    out of date.
    """

    retriable = False
    invalid_metadata = False

    def __str__(self) -> str:
        return f"{type(self).__name__}: {super().__str__()}" if self.args else type(self).__name__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.args == getattr(other, "args", None)

    __hash__ = Exception.__hash__


class RetriableError(KafkaError):
    """An error after which the same call may succeed."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """An error that shows that the client's view of the cluster is out of date."""

    invalid_metadata = True


class Cancelled(RetriableError):
    """A request was cancelled before it was sent."""


class CommitFailedError(KafkaError):
    """Offsets cannot be committed, because the group has given the partitions to another member."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args or ("The group has rebalanced and assigned the partitions to another member.",))


class IllegalArgumentError(KafkaError):
    """An argument has a value that is not allowed."""


class IllegalStateError(KafkaError):
    """A method was called in a state that does not allow it, such as after `close`."""


class KafkaConfigurationError(KafkaError):
    """A configuration that the client cannot use."""


class KafkaConnectionError(InvalidMetadataError):
    """The connection to a broker was lost or could not be opened."""


class KafkaProtocolError(KafkaError):
    """A broker's response cannot be understood."""


class CorrelationIdError(RetriableError, KafkaProtocolError):
    """A response belongs to another request."""


class InvalidReceiveError(KafkaProtocolError):
    """A response has a length that is not allowed."""


class KafkaTimeoutError(RetriableError):
    """The time-out of a call has passed."""


class MetadataEmptyBrokerList(RetriableError):
    """A Metadata response contains no broker."""


class NoOffsetForPartitionError(KafkaError):
    """A partition has no committed offset, and `auto_offset_reset` gives no position."""


class LogTruncationError(KafkaError):
    """A new leader's log lacks records that the consumer has read (KIP-320).

    `divergent_offsets` has the offset from which the logs differ for each partition, or None if it is not known.
    """

    def __init__(self, divergent_offsets: dict[TopicPartition, OffsetAndMetadata | None], *args: Any) -> None:
        self.divergent_offsets = divergent_offsets
        super().__init__(*args or (f"Truncated partitions: {divergent_offsets}",))


class NodeNotReadyError(RetriableError):
    """There is no connection to the broker yet."""


class UnknownBrokerIdError(KafkaError):
    """The cluster has no broker with this id."""


class QuotaViolationError(KafkaError):
    """A value exceeds the quota that is set for a metric."""


class StaleMetadata(InvalidMetadataError):
    """The client's view of the cluster is too old."""


class TooManyInFlightRequests(RetriableError):
    """A connection has as many requests in flight as it may."""


class UnrecognizedBrokerVersion(KafkaError):
    """The version of a broker is not known."""


class UnsupportedCodecError(KafkaError):
    """The records are compressed with a codec that is not available."""


class TransactionAbortedError(KafkaError):
    """A record was not sent, because its transaction was aborted."""

    message = "The transaction of the record was aborted"


class BrokerResponseError(KafkaError):
    """An error code of the protocol: `errno`, its name `message`, and `description`."""

    errno: int | None = None
    message: str | None = None
    description: str | None = None

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


class AuthorizationError(BrokerResponseError):
    """The client has no permission for what it has requested."""


_HIGHEST_CODE = 127
# The names that do not follow from the names of the codes.
_NAMES = {
    Error.UNKNOWN_SERVER_ERROR: "UnknownError",
    Error.NONE: "NoError",
    Error.CORRUPT_MESSAGE: "CorruptRecordError",
    Error.INVALID_FETCH_SIZE: "InvalidFetchRequestError",
    Error.NOT_LEADER_OR_FOLLOWER: "NotLeaderForPartitionError",
    Error.MESSAGE_TOO_LARGE: "MessageSizeTooLargeError",
    Error.INVALID_TOPIC_EXCEPTION: "InvalidTopicError",
    Error.INVALID_REPLICA_ASSIGNMENT: "InvalidReplicationAssignmentError",
    Error.INVALID_CONFIG: "InvalidConfigurationError",
}
# The values of `message` that are not the names of the codes.
_MESSAGES = {
    Error.UNKNOWN_SERVER_ERROR: "UNKNOWN",
    Error.NONE: "NO_ERROR",
    Error.NOT_LEADER_OR_FOLLOWER: "NOT_LEADER_FOR_PARTITION",
    Error.MESSAGE_TOO_LARGE: "MESSAGE_SIZE_TOO_LARGE",
    Error.INVALID_TOPIC_EXCEPTION: "INVALID_TOPIC",
    Error.INVALID_REPLICA_ASSIGNMENT: "INVALID_REPLICATION_ASSIGNMENT",
}
_RETRIABLE = frozenset((7, 14, 15, 16, 19, 20, 41, 51, 70, 71, 78, 88, 89, 106, 122, 123))
_METADATA = frozenset((3, 5, 6, 9, 13, 56, 72, 74, 75, 80, 83, 84, 100, 103))
_AUTHORIZATION = frozenset((29, 30, 31, 53, 65))


def _name(error: Error) -> str:
    words = error.name.removesuffix("_ERROR").split("_")
    return _NAMES.get(error) or "".join(word.capitalize() for word in words) + "Error"


def _bases(code: int) -> tuple[type[KafkaError], ...]:
    if code in _AUTHORIZATION:
        return (AuthorizationError,)
    if code in _RETRIABLE:
        return RetriableError, BrokerResponseError
    return (InvalidMetadataError, BrokerResponseError) if code in _METADATA else (BrokerResponseError,)


def _make(error: Error) -> type[BrokerResponseError]:
    members = {
        "__module__": __name__,
        "__doc__": error.message,
        "errno": int(error),
        "message": _MESSAGES.get(error, error.name),
        "description": error.message,
    }
    return type(_name(error), _bases(error), members)


# error code -> class
kafka_errors: dict[int, type[BrokerResponseError]] = {
    int(error): _make(error) for error in Error if error <= _HIGHEST_CODE
}
globals().update({each.__name__: each for each in kafka_errors.values()})
CorruptRecordException = kafka_errors[Error.CORRUPT_MESSAGE]


class IncompatibleBrokerVersion(kafka_errors[Error.UNSUPPORTED_VERSION]):  # type: ignore[misc, valid-type]
    """The broker is too old for a request."""


def for_code(error_code: int) -> type[BrokerResponseError]:
    """Returns the class of an error code; for an unknown code, a new subclass of UnknownError with that code."""
    known = kafka_errors.get(error_code)
    return known or type("UnrecognizedBrokerError", (kafka_errors[-1],), {"errno": int(error_code)})


_STATE_ERRORS = (ClientClosed, ConcurrentUse, NotSubscribed, SubscriptionError, TransactionError)


def translate(error: BaseException) -> BaseException:
    """Returns kafka-python's exception for an exception of kafkapy's client; any other exception unchanged."""
    if isinstance(error, RequestTimedOut):
        return KafkaTimeoutError(error.message)
    if isinstance(error, LogTruncated):
        agreed = None if error.agreed is None else OffsetAndMetadata(error.agreed.offset, "", error.agreed.epoch)
        return LogTruncationError({TopicPartition(*error.partition): agreed})
    if isinstance(error, NoOffsetForPartition) and not error.is_out_of_range:
        return NoOffsetForPartitionError(TopicPartition(*error.partition))
    if isinstance(error, TransactionAborted):
        return TransactionAbortedError()
    if isinstance(error, ApiError):
        return for_code(error.error)(error.message)
    if isinstance(error, ConfigError):
        return KafkaConfigurationError(str(error))
    if isinstance(error, _STATE_ERRORS):
        return IllegalStateError(str(error))
    return KafkaError(str(error)) if isinstance(error, KafkapyError) else error


@contextmanager
def translated() -> Iterator[None]:
    """Returns a context manager that converts the exceptions of kafkapy's client to those of kafka-python."""
    try:
        yield
    except KafkapyError as error:
        raise translate(error) from error
