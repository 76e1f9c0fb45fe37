"""The connections of simulated followers to their leaders."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.replication.broker import Broker

FIRST_PORT = 9090


class FetchLink:
    """Takes the place of an OutgoingConnection. A request may arrive long after its sender has closed the link."""

    def __init__(
        self,
        source: Broker,
        target: Broker,
        on_response: Callable[[Any], None],
        on_closed: Callable[[Any], None],
    ) -> None:
        self.close_errno = 0
        self._source = source
        self._target = target
        self._life = source.life
        self._target_life = target.life
        self._on_response = on_response
        self._on_closed = on_closed
        self._is_open = True
        self._sent = 0
        self._answered = 0

    def describe_close(self) -> str:
        return "the connection was closed"

    def close(self, reason: str) -> None:
        self._is_open = False

    def send(self, chunks: list[Any]) -> None:
        payload = b"".join(chunks)
        world, source, target = self._source.world, self._source, self._target
        self._sent += 1
        number = self._sent

        def respond(response: list[Any]) -> None:
            self._respond(number, response)

        def handle() -> None:
            if target.life != self._target_life:
                self._break()
            else:
                target.serve(payload, respond)

        if not world.transmit(source.broker_id, target.broker_id, lambda: target.receive(handle)):
            self._lose()

    def _respond(self, number: int, chunks: list[Any]) -> None:
        payload = b"".join(
            chunk if isinstance(chunk, bytes | bytearray | memoryview) else chunk.read() for chunk in chunks
        )
        source = self._source

        def take() -> None:
            # A connection delivers each response once.
            if self._is_open and source.life == self._life and self._answered < number:
                self._answered = number
                self._on_response(SimpleNamespace(payload=memoryview(payload)))

        if not source.world.transmit(self._target.broker_id, source.broker_id, lambda: source.receive(take)):
            self._lose()

    def _lose(self) -> None:
        """Loses a message: the follower learns it by its time-out, or because the connection is reset."""
        if self._source.world.random.random() < 0.5:
            self._break()

    def _break(self) -> None:
        self._source.world.after(self._source.world.delay_ms(), lambda: self._source.receive(self._closed))

    def _closed(self) -> None:
        if self._is_open and self._source.life == self._life:
            self._is_open = False
            self.close_errno = errno.ECONNRESET
            self._on_closed(self)


def connect(source: Broker, port: int, opened: dict[str, Any]) -> None:
    """Opens a connection to the broker at `port`; the arguments are those of OutgoingConnector.connect."""
    world, life = source.world, source.life
    target = world.brokers[port - FIRST_PORT]
    on_opened = opened["on_opened"]
    is_waiting = True

    def finish() -> None:
        nonlocal is_waiting
        if source.life != life or not is_waiting:
            return
        is_waiting = False
        if not target.is_accepting:
            on_opened(OSError(errno.ECONNREFUSED, "Connection refused"))
        else:
            on_opened(FetchLink(source, target, opened["on_response"], opened["on_closed"]))

    # A lost connection request is repeated by the kernel, so that the follower waits until it gives up.
    world.transmit(source.broker_id, target.broker_id, lambda: source.receive(finish))
