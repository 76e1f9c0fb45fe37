"""The values that handlers receive and return, and the error that ends the retries of a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from kafkapy.named_tuple import NamedTuple

RecordHeaders = tuple[tuple[str, bytes | None], ...]


class SourceRecord(Protocol):
    """A record as a consumer returns it, with key and value as bytes."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: RecordHeaders


class Delivery(NamedTuple):
    """A record as a handler receives it. Only `attempt` differs between the attempts to handle the record.

    `topic`, `partition`, `offset` and `timestamp` (ms since 1970) are those of the record in its original topic, also
    when the record was read from a retry topic. `headers` has no headers of the retry chain. `attempt` is 1 for the
    first attempt.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders = ()
    attempt: int = 1


class Output(NamedTuple):
    """A record that a handler sends, in the same transaction that commits the offset of the handler's input.

    `partition` of None lets the producer choose the partition; `timestamp` is in ms since 1970, None for the present
    time.
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: RecordHeaders = ()
    partition: int | None = None
    timestamp: int | None = None

    @property
    def size(self) -> int:
        """The number of bytes of key, value and headers, and an allowance for the lengths in the record's format."""
        size = len(self.value or b"") + len(self.key or b"") + 70
        return size + sum(len(name.encode()) + len(value or b"") + 10 for name, value in self.headers)


class Failure(Exception):
    """An error of a handler that no further attempt can remove: the record becomes a dead letter at once."""


class HandlerTimedOut(Exception):
    """A handler has not returned within its time limit."""


class HandlerDied(Exception):
    """The process of a handler has ended while it was handling a record."""


class UnusableOutput(Exception):
    """A handler has returned something that cannot be sent."""


def checked_outputs(returned: object) -> Iterator[Output]:
    """Yields the outputs that a handler has returned: None, one Output, or an iterable of them.

    Raises UnusableOutput for anything else.
    """
    if returned is None:
        return
    each: object
    for each in [returned] if isinstance(returned, Output) or not isinstance(returned, Iterable) else returned:
        if not isinstance(each, Output) or not isinstance(each.topic, str):
            raise UnusableOutput(f"The handler returned {type(each).__name__} where an Output is expected")
        for content in (each.key, each.value, *(value for _, value in each.headers)):
            if content is not None and not isinstance(content, bytes | bytearray | memoryview):
                raise UnusableOutput(f"An Output contains {type(content).__name__} where bytes are expected")
        yield each
