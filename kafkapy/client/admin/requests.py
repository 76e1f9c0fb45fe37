"""The requests of an admin client: sent by whoever drives its network, and again after errors that pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.exchange import POLL_MS, passes
from kafkapy.client.network import NEVER, Network
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import API_TABLE, ApiKey

# Where a request goes: the broker's id, None while it is not known. Called with the seat held; raises ApiError.
Target = Callable[[int], int | None]


def constant(message: Message) -> Callable[[int], Message]:
    """Builds the same message whatever the version."""
    return lambda version: message


def no_fault(response: Any) -> ApiError | None:
    """Judges a response whose errors are of single keys."""
    return None


def top_level_fault(response: Any) -> ApiError | None:
    """Judges a response by its own error code, which says that all of it failed."""
    return error_of(response)


def error_of(told: Any) -> ApiError | None:
    """The error of a part of a response with `error_code` and perhaps `error_message`; None if there is none."""
    if not told.error_code:
        return None
    return ApiError(Error.of(told.error_code), getattr(told, "error_message", None) or None)


class AdminRequest:
    """One request, until its response or the error that ends it.  Touched with the network's seat held.

    `fault(response)` is the error that the response as a whole stands for: asked again if that passes, else raised.
    """

    __slots__ = (
        "asks_again",
        "attempts",
        "build",
        "error",
        "fault",
        "is_done",
        "is_open",
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
        fault: Callable[[Any], ApiError | None] = no_fault,
    ) -> None:
        self.target = target
        self.key = key
        self.build = build
        self.fault = fault
        self.response: Any = None
        self.error: ApiError | None = None
        self.is_done = False
        self.is_open = False
        self.asks_again = True  # False: whoever asks looks up anew whom to ask
        self.attempts = 0
        self.not_before_ms = 0

    def finish(self, response: Any, error: ApiError | None) -> None:
        """It has its answer."""
        self.response = response
        self.error = error
        self.is_done = True

    def result(self) -> Any:
        """The response; raises the error."""
        if self.error is not None:
            raise self.error
        return self.response


class RequestQueue:
    """The task of an admin client's network: owns the requests without an answer.  Touched with the seat held."""

    def __init__(self, network: Network, retries: int) -> None:
        self._network = network
        self._retries = retries
        self._waiting: list[AdminRequest] = []

    def add(self, requests: Iterable[AdminRequest]) -> None:
        """They are sent in the next turn."""
        self._waiting += requests

    def give_up(self, requests: Iterable[AdminRequest], reason: str) -> None:
        """Those without an answer by now fail with REQUEST_TIMED_OUT."""
        for request in requests:
            if not request.is_done:
                self._finish(request, None, ApiError(Error.REQUEST_TIMED_OUT, reason))

    def run(self, now_ms: int) -> int:
        """Sends what is due; returns when the next is."""
        due = NEVER
        for request in list(self._waiting):
            if request.is_open or request.is_done:
                continue
            if now_ms >= request.not_before_ms:
                self._send(request, now_ms)
            if not request.is_open and not request.is_done:
                due = min(due, max(request.not_before_ms, now_ms + POLL_MS))
        return due

    def _send(self, request: AdminRequest, now_ms: int) -> None:
        try:
            node_id = request.target(now_ms)
        except ApiError as error:
            self._finish(request, None, error)
            return
        if node_id is not None:
            request.is_open = True
            self._network.submit(node_id, request.key, request.build, partial(self._answered, request))

    def _answered(self, request: AdminRequest, response: Any, version: int, error: Exception | None) -> None:
        request.is_open = False
        if request.is_done:
            return  # given up meanwhile
        failure = _as_api_error(request.key, error) if response is None else request.fault(response)
        if failure is not None and request.asks_again and passes(failure) and request.attempts < self._retries:
            now_ms = self._network.clock.monotonic_ms()
            request.not_before_ms = now_ms + self._network.retry_backoff.pause_ms(request.attempts)
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
