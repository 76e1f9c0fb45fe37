"""Responds to a request after the controller has committed its change; the reactor's thread does not wait."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.server.request_context import RequestContext

logger = logging.getLogger("kafka.server.KafkaApis")
Response = TypeVar("Response")


def answer_when_committed(
    context: RequestContext,
    operation: Callable[[MetadataImage], ControllerResult[Response]],
    answer: Callable[[Response], Any],
    failure: Callable[[Error, str | None], Any],
) -> None:
    """Submits `operation` to the controller, and responds on the reactor's thread once the change is committed.

    The response is `answer(response)`, or `failure(error, message)` if the operation failed.

    The listeners of the metadata post their work before the response, so that the next request sees the change.
    """
    reactor = context.services.reactor
    future = context.services.controller.submit(operation)

    def done(finished: Future[Response]) -> None:
        reactor.post(lambda: context.respond(_response(finished, answer, failure)))

    future.add_done_callback(done)


def _response(
    finished: Future[Response], answer: Callable[[Response], Any], failure: Callable[[Error, str | None], Any]
) -> Any:
    error = finished.exception()
    if error is None:
        try:
            return answer(finished.result())
        except Exception as bug:
            error = bug
    if isinstance(error, ApiError):
        return failure(error.error, error.message)
    logger.error("A request to the controller failed", exc_info=error)
    return failure(Error.UNKNOWN_SERVER_ERROR, Error.UNKNOWN_SERVER_ERROR.message)
