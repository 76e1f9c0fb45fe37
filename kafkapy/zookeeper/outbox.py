"""The queue of replies and watch events that wait until the changes that they show are durable.

All frames leave in the order of the operations that caused them, for all clients together: a reply never shows a change
that may still be lost, and a watch event precedes the reply of the operation that caused it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol


class Recipient(Protocol):
    """A client's connection, to which frames are sent."""

    def send(self, frame: bytes) -> None:
        """Sends one frame without its size; does nothing if the connection is closed."""

    def hold(self, size: int) -> None:
        """Counts the bytes of the frames that wait for this recipient in the outbox: `size` more, or less if it is
        negative."""


class Call:
    """A recipient in the outbox that calls a function at its turn, instead of sending a frame.

    `on_turn` is called with True after all frames of earlier operations were sent, or with False if they were dropped
    because the connections are closed.
    """

    __slots__ = ("on_turn",)

    def __init__(self, on_turn: Callable[[bool], None]) -> None:
        self.on_turn = on_turn

    def send(self, frame: bytes) -> None:
        self.on_turn(True)

    def hold(self, size: int) -> None:
        """Does nothing, because no frame waits."""


class Slot:
    """The frames of one operation.

    They are sent once all events that the operation waits for have happened (the slot is complete), and all earlier
    slots were sent.
    """

    __slots__ = ("_frames", "_outbox", "_waits_for", "on_complete")

    def __init__(self, outbox: Outbox, steps: int) -> None:
        """Creates a slot that is complete after `steps` calls of `step`; then `on_complete` is called, unless it is
        None."""
        self.on_complete: Callable[[], None] | None = None
        self._outbox = outbox
        self._waits_for = steps
        self._frames: list[tuple[Recipient, bytes]] = []

    def add(self, recipient: Recipient, frame: bytes) -> None:
        self._frames.append((recipient, frame))
        recipient.hold(len(frame))

    def step(self) -> None:
        """Counts one of the `steps` events for which the slot waits.

        After the last one the slot is complete: its frames are sent as soon as all slots before it were sent.
        """
        self._waits_for -= 1
        if self._waits_for == 0:
            self._outbox.flush()
            if self.on_complete is not None:
                self.on_complete()

    @property
    def is_complete(self) -> bool:
        return self._waits_for == 0

    def send(self) -> None:
        self._outbox.sent_count += len(self._frames)
        for recipient, frame in self._frames:
            recipient.hold(-len(frame))
            recipient.send(frame)

    def drop(self) -> None:
        for recipient, _ in self._frames:
            if isinstance(recipient, Call):
                recipient.on_turn(False)


class Outbox:
    """The slots in the order of their operations. Only the reactor's thread may use it."""

    def __init__(self) -> None:
        self.sent_count = 0
        self._slots: deque[Slot] = deque()

    def __len__(self) -> int:
        """The number of operations whose frames wait."""
        return len(self._slots)

    def reserve(self, steps: int) -> Slot:
        slot = Slot(self, steps)
        self._slots.append(slot)
        return slot

    def send(self, recipient: Recipient, frame: bytes) -> None:
        """Sends a frame after all frames of earlier operations, at once if none waits."""
        if not self._slots:
            self.sent_count += 1
            recipient.send(frame)
            return
        slot = self.reserve(0)
        slot.add(recipient, frame)

    def flush(self) -> None:
        slots = self._slots
        while slots and slots[0].is_complete:
            slots.popleft().send()

    def clear(self) -> None:
        """Drops all frames, because the connections are closed; each Call that waits is called with False."""
        dropped = list(self._slots)
        self._slots.clear()
        for slot in dropped:
            slot.drop()
