"""What a controller operation answers: the records that it wants in the log, and what its caller is told then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

Response = TypeVar("Response")
MessageAndVersion = tuple[Any, int]

# Kafka's bound on what one request may write.
MAX_RECORDS_PER_USER_OPERATION = 10_000


class ControllerResult(NamedTuple, Generic[Response]):
    """Immutable. `records` are (message, record version); `response` is given out once they are durable."""

    records: Sequence[MessageAndVersion]
    response: Response


class ErrorMessage(NamedTuple):
    """An error of one item of a request; `error` is its wire code, 0 for none."""

    error: int
    message: str | None


SUCCESS = ErrorMessage(0, None)
