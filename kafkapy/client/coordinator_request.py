"""Sends requests to a coordinator and blocks until they succeed; repeats them after retriable errors, up to
a time-out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.client.coordinator import COORDINATOR_MOVED, Coordinator
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error

POLL_MS = 50  # how often to check whether the coordinator has been found
_RETRIED = COORDINATOR_MOVED | {
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNSTABLE_OFFSET_COMMIT,
    Error.CONCURRENT_TRANSACTIONS,
    Error.STALE_MEMBER_EPOCH,  # the next heartbeat brings the current epoch
}
OnResult = Callable[[Any, Exception | None], None]


def is_retried(error: Exception | None) -> bool:
    """Returns whether a request to a coordinator is repeated after `error`; False for None, which is a success.

    It is repeated after Kafka's retriable errors, except REBALANCE_IN_PROGRESS, and after a few other errors that pass,
    such as STALE_MEMBER_EPOCH.
    """
    if not isinstance(error, ApiError) or error.error is Error.REBALANCE_IN_PROGRESS:
        return False
    return error.error in _RETRIED or error.error.retriable


def request_until_done(
    network: Network, coordinator: Coordinator, send: Callable[[int, OnResult], None], timeout_s: float, goal: str
) -> Any:
    """Calls `send(node_id, on_result)` and blocks until the request has a result; repeats it after errors that are
    retried.

    `send` is called while `Network.lock` is held; it sends the request to this coordinator, and calls
    `on_result(result, error)` once. Returns the result, or raises the first error that is not retried (`is_retried`).
    Raises RequestTimedOut after `timeout_s` seconds, with `goal` in its message: "expired before `goal`".
    """
    results: list[tuple[Any, Exception | None]] = []
    is_open = False
    not_before = 0

    def on_result(result: Any, error: Exception | None) -> None:
        nonlocal is_open, not_before
        is_open = False
        if is_retried(error):
            if isinstance(error, ApiError):
                coordinator.on_error(error.error)
            not_before = network.clock.monotonic_ms() + network.retry_backoff.pause_ms(0)
        else:
            results.append((result, error))

    def is_done() -> bool:
        nonlocal is_open
        now = network.clock.monotonic_ms()
        if not results and not is_open and now >= not_before:
            node_id = coordinator.node(now)
            if node_id is not None:
                is_open = True
                send(node_id, on_result)
        return bool(results)

    if not network.wait_until(is_done, timeout_s, poll_ms=POLL_MS):
        raise network.timed_out(f"Timeout of {timeout_s} s expired before {goal}")
    result, error = results[0]
    if error is not None:
        raise error
    return result
