"""The result of a controller operation: records for the metadata log, and the response, sent once they are
committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple

Response = TypeVar("Response")

# Kafka's limit on the records of one request.
MAX_RECORDS_PER_USER_OPERATION = 10_000


class ControllerResult(NamedTuple, Generic[Response]):
    """The outcome of an operation. `records` are pairs (message, version); `response` is sent once they are
    committed."""

    records: Sequence[MessageAndVersion]
    response: Response


# A decision of the controller about an image. Raises ApiError if it refuses the request.
Operation = Callable[[MetadataImage], ControllerResult[Response]]


def check_record_count(records: Sequence[MessageAndVersion]) -> None:
    """Raises ApiError(POLICY_VIOLATION) if the `records` of one request are more than one batch may contain."""
    if len(records) > MAX_RECORDS_PER_USER_OPERATION:
        raise ApiError(Error.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


class ErrorMessage(NamedTuple):
    """The result of one item of a request; `error` is Kafka's error code, 0 if the item succeeded."""

    error: int
    message: str | None


SUCCESS = ErrorMessage(0, None)
