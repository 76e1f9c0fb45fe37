"""Calls the handler of a request and responds with its result or error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafkapy.errors import ApiError, Error, ProtocolViolation, StorageError
from kafkapy.server.api_registry import DECLARATIONS, Handler, ServedApi
from kafkapy.server.request_context import RequestContext

logger = logging.getLogger("kafka.server.KafkaApis")


def call_handler(served: ServedApi, context: RequestContext, message: Any) -> None:
    """Calls the handler. The response is sent before this function returns, or later by the handler. Only the
    reactor's thread may use it."""
    if served.blocking:
        _submit(served, context, message)
        return
    try:
        response = served.handler(context, message)
    except Exception as error:
        if not context.answered:
            fail(served, context, message, error)
        else:
            logger.exception("Error after the response to request %r", context.header)
        return
    if response is not None:
        context.respond(response)


def _submit(served: ServedApi, context: RequestContext, message: Any) -> None:
    """Runs the handler on the handler pool; its result or error is handled on the reactor's thread."""

    def work() -> Any:
        try:
            response = served.handler(context, message)
        except Exception as error:
            caught = error
            return lambda: fail(served, context, message, caught)
        return None if response is None else lambda: context.respond(response)

    context.submit(work)


def submit_part(
    handler: Handler, context: RequestContext, message: Any, work: Callable[[], Callable[[], object]]
) -> None:
    """Runs `work`, a part of a handler's work, on the handler pool; then runs the function that `work` returns on the
    reactor's thread.

    The client receives the same response to an error of `work` as to an error of the handler. Only the reactor's thread
    may call this.
    """
    (served,) = (each for each in getattr(handler, DECLARATIONS) if each.key == context.api_key)

    def guarded() -> Callable[[], object]:
        try:
            return work()
        except Exception as error:
            caught = error
            return lambda: fail(served, context, message, caught)

    context.submit(guarded)


def fail(served: ServedApi, context: RequestContext, message: Any, raised: Exception) -> None:
    """Responds to the error `raised` by the handler with the response of the API's `on_error` function.

    Closes the connection for a ProtocolViolation, or if there is no such function or it returns no response.
    """
    if isinstance(raised, ProtocolViolation):
        context.connection.close(str(raised))
        return
    if isinstance(raised, ApiError):
        error, text = raised.error, raised.message
    elif isinstance(raised, StorageError):
        logger.error("Request %r met a storage error: %s", context.header, raised)
        error, text = Error.KAFKA_STORAGE_ERROR, None
    else:
        logger.error("Unexpected error handling request %r", context.header, exc_info=raised)
        error, text = Error.UNKNOWN_SERVER_ERROR, None
    if served.on_error is None:
        context.connection.close(f"{served.key.name} failed: {error.name}")
        return
    response = served.on_error(message, context.api_version, error, text)
    if response is None:  # the client expects no response, so that only a closed connection shows the error
        context.connection.close(f"{served.key.name} failed: {error.name}")
        return
    context.respond(response)
