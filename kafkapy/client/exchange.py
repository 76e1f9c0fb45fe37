"""A question that a caller waits for: asked again after errors that pass, until there is an answer or no time left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.client.coordinator import COORDINATOR_MOVED, Coordinator
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error

POLL_MS = 50  # how often a question whose coordinator is being looked for looks again
_RETRIED = COORDINATOR_MOVED | {
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNSTABLE_OFFSET_COMMIT,
    Error.CONCURRENT_TRANSACTIONS,
    Error.STALE_MEMBER_EPOCH,  # the next heartbeat brings the new one
}
Answered = Callable[[Any, Exception | None], None]


def passes(error: Exception | None) -> bool:
    """Whether asking again may help; a rebalance is the application's business."""
    if not isinstance(error, ApiError) or error.error is Error.REBALANCE_IN_PROGRESS:
        return False
    return error.error in _RETRIED or error.error.retriable


def until_answered(
    network: Network, coordinator: Coordinator, ask: Callable[[int, Answered], None], timeout_s: float, what: str
) -> Any:
    """Calls `ask(node_id, answered)` with the seat held; what it answers with is returned or raised. TimeoutError."""
    answers: list[tuple[Any, Exception | None]] = []
    is_open = False
    not_before = 0

    def answered(result: Any, error: Exception | None) -> None:
        nonlocal is_open, not_before
        is_open = False
        if passes(error):
            if isinstance(error, ApiError):
                coordinator.heed(error.error)
            not_before = network.clock.monotonic_ms() + network.retry_backoff.pause_ms(0)
        else:
            answers.append((result, error))

    def is_done() -> bool:
        nonlocal is_open
        now = network.clock.monotonic_ms()
        if not answers and not is_open and now >= not_before:
            node_id = coordinator.node(now)
            if node_id is not None:
                is_open = True
                ask(node_id, answered)
        return bool(answers)

    if not network.wait_until(is_done, timeout_s, poll_ms=POLL_MS):
        raise network.timed_out(f"Timeout of {timeout_s} s expired before {what}")
    result, error = answers[0]
    if error is not None:
        raise error
    return result
