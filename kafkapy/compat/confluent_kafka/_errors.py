"""KafkaError and the exceptions of confluent-kafka, and their values for the exceptions of kafkapy's client."""

from __future__ import annotations

from typing import Any

from kafkapy.client.errors import (
    AuthenticationError,
    LogTruncated,
    NoOffsetForPartition,
    RequestTimedOut,
    SubscriptionError,
    TransactionError,
    WakeupError,
)
from kafkapy.compat.confluent_kafka._error_codes import ERRORS
from kafkapy.errors import ApiError, ConfigError, Error


class KafkaError:
    """An error of a broker or of the client: its code, its name, and a text.

    Two errors with the same code are equal, and an error is equal to the integer that is its code. The codes are
    attributes of the class, such as `KafkaError.UNKNOWN_TOPIC_OR_PART` and `KafkaError._TIMED_OUT`.
    """

    __slots__ = ("_code", "_fatal", "_reason", "_retriable", "_txn_requires_abort")

    def __init__(
        self,
        error: int,
        reason: str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None:
        self._code = int(error)
        self._reason = reason
        self._fatal = bool(fatal)
        self._retriable = bool(retriable)
        self._txn_requires_abort = bool(txn_requires_abort)

    def code(self) -> int:
        """Returns the error's code: Kafka's number, or a negative number for an error of the client."""
        return self._code

    def name(self) -> str:
        """Returns the name of the error's code."""
        known = ERRORS.get(self._code)
        return f"ERR_{self._code}?" if known is None else known[0]

    def str(self) -> str:
        """Returns the text of the error."""
        if self._reason is not None:
            return self._reason
        known = ERRORS.get(self._code)
        return f"Err-{self._code}?" if known is None else known[1]

    def fatal(self) -> bool:
        """Returns whether the client can no longer be used."""
        return self._fatal

    def retriable(self) -> bool:
        """Returns whether the operation can be tried again."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """Returns whether the current transaction has to be aborted."""
        return self._txn_requires_abort

    def __repr__(self):  # type: ignore[no-untyped-def]
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self.str()}"}}'

    __str__ = __repr__

    def __bool__(self) -> bool:
        return True  # also for NO_ERROR, as in confluent-kafka

    def __hash__(self) -> int:
        return self._code

    def _other(self, other: object) -> int | None:
        if isinstance(other, KafkaError):
            return other._code
        return other if isinstance(other, int) else None

    def __eq__(self, other: object) -> bool:
        return self._code == self._other(other)

    def __ne__(self, other: object) -> bool:
        return self._code != self._other(other)

    def __lt__(self, other: object) -> bool:
        code = self._other(other)
        return NotImplemented if code is None else self._code < code

    def __le__(self, other: object) -> bool:
        code = self._other(other)
        return NotImplemented if code is None else self._code <= code

    def __gt__(self, other: object) -> bool:
        code = self._other(other)
        return NotImplemented if code is None else self._code > code

    def __ge__(self, other: object) -> bool:
        code = self._other(other)
        return NotImplemented if code is None else self._code >= code

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._code, self._reason, self._fatal, self._retriable, self._txn_requires_abort)
        return KafkaError, arguments


for _number, (_name, _text) in ERRORS.items():
    setattr(KafkaError, _name, _number)


class KafkaException(Exception):
    """The exception of every failed operation; its first argument is the KafkaError."""


class IllegalStateException(RuntimeError):
    """A share consumer's method was called in a state that does not allow it."""


class ConcurrentModificationException(RuntimeError):
    """A share consumer was used by two threads at the same time."""


def code_of(name: str) -> int:
    """Returns the error code that KafkaError has under this name, such as `_TIMED_OUT`."""
    code: int = getattr(KafkaError, name)
    return code


TIMED_OUT, MSG_TIMED_OUT, TRANSPORT = code_of("_TIMED_OUT"), code_of("_MSG_TIMED_OUT"), code_of("_TRANSPORT")
INVALID_ARG, STATE, AUTHENTICATION = code_of("_INVALID_ARG"), code_of("_STATE"), code_of("_AUTHENTICATION")
FENCED, FATAL, CONFLICT = code_of("_FENCED"), code_of("_FATAL"), code_of("_CONFLICT")
# The exceptions of kafkapy's client that are not the error code of a broker, the derived class before its base.
_LOCAL: tuple[tuple[type[BaseException], int], ...] = (
    (LogTruncated, code_of("_LOG_TRUNCATION")),
    (NoOffsetForPartition, code_of("_AUTO_OFFSET_RESET")),
    (RequestTimedOut, TIMED_OUT),
    (AuthenticationError, AUTHENTICATION),
    (ConfigError, INVALID_ARG),
    (TransactionError, STATE),
    (SubscriptionError, CONFLICT),
    (WakeupError, code_of("_INTR")),
)
_FENCING = frozenset((Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH))


def kafka_error(error: BaseException, prefix: str = "", **flags: bool) -> KafkaError:
    """Returns the KafkaError for an exception of kafkapy's client. The text of the KafkaError begins with `prefix`.

    An error of a broker keeps its number. `flags` are `fatal`, `retriable` and `txn_requires_abort`, as for KafkaError.
    """
    for kind, code in _LOCAL:
        if isinstance(error, kind):
            return KafkaError(code, prefix + (getattr(error, "message", "") or str(error)), **flags)
    if not isinstance(error, ApiError):
        return KafkaError(code_of("_FAIL"), prefix + str(error), **flags)
    code = TRANSPORT if error.error is Error.NETWORK_EXCEPTION else int(error.error)
    flags.setdefault("retriable", error.error.retriable)
    text = error.message if error.message != error.error.message else ERRORS.get(code, ("", error.message))[1]
    return KafkaError(code, prefix + text, **flags)


def kafka_exception(error: BaseException, prefix: str = "", **flags: bool) -> KafkaException:
    """Returns the KafkaException for `error`, an exception of kafkapy's client, with `error` as its `__cause__`.

    The text of the KafkaException begins with `prefix`. `flags` (`fatal`, `retriable`, `txn_requires_abort`) are set in
    its KafkaError.
    """
    exception = KafkaException(kafka_error(error, prefix, **flags))
    exception.__cause__ = error
    return exception


def transaction_exception(error: BaseException) -> KafkaException:
    """Returns the exception for a failed transactional call, with flags that tell the program how to continue.

    The flags are `retriable`, `txn_requires_abort` and `fatal` (another producer has taken over the transactional id).
    """
    if isinstance(error, RequestTimedOut):
        return kafka_exception(error, retriable=True)
    if isinstance(error, ApiError) and error.error in _FENCING:
        exception = KafkaException(KafkaError(FENCED, error.message, fatal=True))
        exception.__cause__ = error
        return exception
    if isinstance(error, ApiError):
        return kafka_exception(error, retriable=False, txn_requires_abort=True)
    return kafka_exception(error)


def local_error(name: str, reason: str | None = None) -> KafkaException:
    """Returns a KafkaException for an error of the client itself, not of a broker.

    `name` is the name of the error's code in KafkaError, such as `_STATE`; `reason` is the text, None for the default
    text.
    """
    return KafkaException(KafkaError(code_of(name), reason))
