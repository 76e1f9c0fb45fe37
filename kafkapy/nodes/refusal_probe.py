"""Checks whether a process still listens at the addresses of another node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkapy.nodes.node_channel import Destination, NodeChannel
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest

ATTEMPTS = 2
TIMEOUT_MS = 2000
# A process that was killed closes its files one after the other: its listeners accept connections for some time after
# the end of its first connection, longer if it has the logs of many partitions.
PAUSES_MS = (50, 200, 800)


def probe(
    thread: NodeThread, destinations: Sequence[Destination], client_id: str, on_result: Callable[[bool], object]
) -> None:
    """Tries twice to connect to each destination, and calls `on_result(is_refused)` once, on the node thread.

    `is_refused` is True only if every attempt was refused, which shows that no process listens at these addresses. If
    the machine does not respond at all, or if there are no destinations, it is False, because the process may still
    run.
    """
    if not destinations:
        thread.schedule(0, lambda: on_result(False))
        return
    remaining = [ATTEMPTS * len(destinations)]

    def end(is_refused: bool) -> None:
        if remaining[0] > 0:
            remaining[0] = 0
            on_result(is_refused)

    def start(destination: Destination) -> None:
        channel = NodeChannel(thread, destination, client_id=client_id)
        attempts = [ATTEMPTS]

        def attempt() -> None:
            deadline_ms = thread.clock.monotonic_ms() + TIMEOUT_MS
            channel.send(ApiVersionsRequest(), ApiKey.API_VERSIONS, done, deadline_ms)

        def done(response: Any, version: int, error: Exception | None) -> None:
            attempts[0] -= 1
            if error is None or not isinstance(error.__cause__, ConnectionRefusedError):
                channel.close()
                end(False)
                return
            if attempts[0]:
                attempt()
            else:
                channel.close()
            if remaining[0] == 1:
                end(True)
            remaining[0] -= 1

        attempt()

    for each in destinations:
        start(each)


def probe_until_refused(
    thread: NodeThread, destinations: Sequence[Destination], client_id: str, on_refused: Callable[[], object]
) -> None:
    """Calls `probe` repeatedly, until one call reports that all of its attempts to connect were refused.

    Then calls `on_refused` once, on the node thread. Gives up after four calls, within about a second, without calling
    `on_refused`.
    """
    pauses_ms = iter(PAUSES_MS)

    def on_result(is_refused: bool) -> None:
        if is_refused:
            on_refused()
            return
        pause_ms = next(pauses_ms, None)
        if pause_ms is not None:
            thread.schedule(pause_ms, start)

    def start() -> None:
        probe(thread, destinations, client_id, on_result)

    start()
