"""The requests of an admin client, which are repeated after retriable errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.coordinator_request import POLL_MS, is_retried
from kafkapy.client.errors import RequestTimedOut
from kafkapy.client.network import NEVER, Network
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.protocol.response_errors import part_with_error

# Returns the id of the broker that a request is for; None while it is not known. Called with the monotonic time, while
# `Network.lock` is held; raises ApiError.
Target = Callable[[int], int | None]


def constant(message: Message) -> Callable[[int], Message]:
    """Returns a function that returns `message` for every version; it is passed as the `build` of a request."""
    return lambda version: message


def no_error(response: Any) -> ApiError | None:
    """Returns None. It is the `find_error` of a request whose response has only errors that concern a single key."""
    return None


def top_level_error(response: Any) -> ApiError | None:
    """Returns the top-level error of a response, which applies to all of the response; None if there is none."""
    return error_of(response)


def error_of(result: Any) -> ApiError | None:
    """Returns the error that a struct of a response has in `error_code` and `error_message`; None for the code 0."""
    if not result.error_code:
        return None
    return ApiError(Error.of(result.error_code), getattr(result, "error_message", None) or None)


class AdminRequest:
    """One request and, when it is done, its response or error. Used with `Network.lock`, the lock of the client's
    network loop, held.

    `target(monotonic_ms)` returns the id of the broker to send to, or None if it is not known yet. `build(version)`
    makes the message; `highest` is the newest version that may be sent (None: no limit). `find_error(response)` returns
    the error of the response as a whole, or None. After a retriable error the request is sent again.
    """

    __slots__ = (
        "attempts",
        "build",
        "error",
        "find_error",
        "highest",
        "is_done",
        "is_in_flight",
        "is_repeated",
        "key",
        "not_before_ms",
        "response",
        "target",
    )

    def __init__(
        self,
        target: Target,
        key: ApiKey,
        build: Callable[[int], Message],
        find_error: Callable[[Any], ApiError | None] = no_error,
        *,
        highest: int | None = None,
    ) -> None:
        self.target = target
        self.key = key
        self.build = build
        self.find_error = find_error
        self.highest = highest
        self.response: Any = None
        self.error: ApiError | None = None
        self.is_done = False
        self.is_in_flight = False
        self.is_repeated = True  # if False, the caller looks up the broker and sends a new request
        self.attempts = 0
        self.not_before_ms = 0

    def error_in(self, response: Any) -> ApiError | None:
        """Returns the error because of which the whole request has failed; None if it has not failed.

        This is the error that `find_error` returns. If `find_error` returns None, an error NOT_CONTROLLER in any struct
        of the response fails the whole request too, unless `is_repeated` is False. This error means that the node is no
        longer the active controller, so that the request has to be sent again.
        """
        failure = self.find_error(response)
        if failure is None and self.is_repeated:
            misdirected = part_with_error(response, Error.NOT_CONTROLLER)
            failure = None if misdirected is None else error_of(misdirected)
        return failure

    def finish(self, response: Any, error: ApiError | None) -> None:
        """Stores the response or the error."""
        self.response = response
        self.error = error
        self.is_done = True

    def result(self) -> Any:
        """Returns the response, or raises the error."""
        if self.error is not None:
            raise self.error
        return self.response


class RequestQueue:
    """The unfinished requests of an admin client: sends them, and repeats them after retriable errors.

    The network loop of the client (`Network`) calls `run` in each of its passes, while it holds `Network.lock`. The
    methods of this class must be called with this lock held.
    """

    def __init__(self, network: Network, retries: int) -> None:
        self._network = network
        self._retries = retries
        self._waiting: list[AdminRequest] = []

    def add(self, requests: Iterable[AdminRequest]) -> None:
        """Adds requests, which the next step (pass of the network loop) sends."""
        self._waiting += requests

    def give_up(self, requests: Iterable[AdminRequest], reason: str) -> None:
        """Fails those of the requests that are not done yet with RequestTimedOut; `reason` is the error's message."""
        for request in requests:
            if not request.is_done:
                self._finish(request, None, RequestTimedOut(reason))

    def run(self, monotonic_ms: int) -> int:
        """Sends the requests that are new or whose pause after an error is over.

        Returns the monotonic time in ms at which to call `run` again; NEVER if no request waits to be sent.
        """
        due = NEVER
        for request in list(self._waiting):
            if request.is_in_flight or request.is_done:
                continue
            if monotonic_ms >= request.not_before_ms:
                self._send(request, monotonic_ms)
            if not request.is_in_flight and not request.is_done:
                due = min(due, max(request.not_before_ms, monotonic_ms + POLL_MS))
        return due

    def _send(self, request: AdminRequest, monotonic_ms: int) -> None:
        try:
            node_id = request.target(monotonic_ms)
        except ApiError as error:
            self._finish(request, None, error)
            return
        if node_id is not None:
            request.is_in_flight = True
            on_done = partial(self._on_response, request)
            self._network.submit(node_id, request.key, request.build, on_done, highest=request.highest)

    def _on_response(self, request: AdminRequest, response: Any, version: int, error: Exception | None) -> None:
        request.is_in_flight = False
        if request.is_done:
            return  # the caller has stopped waiting
        failure = _as_api_error(request.key, error) if response is None else request.error_in(response)
        if failure is not None and request.is_repeated and is_retried(failure) and request.attempts < self._retries:
            monotonic_ms = self._network.clock.monotonic_ms()
            request.not_before_ms = monotonic_ms + self._network.retry_backoff.pause_ms(request.attempts)
            request.attempts += 1
            self._network.metadata.request_update()
        else:
            self._finish(request, None if failure is not None else response, failure)

    def _finish(self, request: AdminRequest, response: Any, error: ApiError | None) -> None:
        request.finish(response, error)
        self._waiting.remove(request)


def _as_api_error(key: ApiKey, error: Exception | None) -> ApiError:
    if isinstance(error, ApiError):
        return error
    return ApiError(Error.UNKNOWN_SERVER_ERROR, f"{API_TABLE[key].name}: {error}")
