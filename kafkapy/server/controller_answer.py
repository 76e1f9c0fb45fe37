"""Responds to a request after the controller has committed its change; the reactor's thread does not wait."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from kafkapy.controller.result import Operation, Response
from kafkapy.errors import ApiError, Error
from kafkapy.server.request_context import RequestContext

logger = logging.getLogger("kafka.server.KafkaApis")


def answer_when_committed(
    context: RequestContext,
    operation: Operation[Response],
    answer: Callable[[Response], Any],
    failure: Callable[[Error, str | None], Any],
) -> None:
    """Submits `operation` to the controller, and responds on the reactor's thread once the change is committed.

    The response is `answer(the operation's response)`, or `failure(error, message)` if the change failed. If this node
    is no longer the active controller, the request is forwarded.
    """
    answer_when_done(context, lambda: context.services.controller.submit(operation), answer, failure)


def answer_when_done(
    context: RequestContext,
    start: Callable[[], Future[Response]],
    answer: Callable[[Response], Any],
    failure: Callable[[Error, str | None], Any],
) -> None:
    """Calls `start` to begin a change of the metadata, and responds on the reactor's thread once the returned Future
    has ended.

    The response is `answer(response)`, or `failure(error, message)` if the change failed. Listeners of the metadata
    post their work to the reactor before the response, so that the client's next request sees the change. If this node
    is no longer the active controller, the request is forwarded.
    """
    services = context.services
    reactor, controller = services.reactor, services.controller

    def refuse(error: Error, message: str | None) -> None:
        context.respond(failure(error, message))

    if context.payload is not None and not controller.is_active and context.hand_over(refuse):
        return

    def done(finished: Future[Response]) -> None:
        reactor.post(lambda: _respond(context, finished, answer, failure))

    start().add_done_callback(done)


def _respond(
    context: RequestContext,
    finished: Future[Response],
    answer: Callable[[Response], Any],
    failure: Callable[[Error, str | None], Any],
) -> None:
    error = finished.exception()

    def refuse(refused: Error, message: str | None) -> None:
        context.respond(failure(refused, message))

    is_misplaced = isinstance(error, ApiError) and error.error is Error.NOT_CONTROLLER
    if is_misplaced and context.hand_over(refuse):
        return
    context.respond(_response(finished, answer, failure))


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
