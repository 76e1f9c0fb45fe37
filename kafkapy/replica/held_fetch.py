"""A fetch that waits for the gate: it is presented to it again when there may be more to read, and at its deadline.

Nothing was changed when the gate first saw it, not even its session. What the gate declines by then, since a leader
changed or a transaction began, goes the Python way, as if it had just come, but with what is left of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkapy._core.broker_state.partition_state import PartitionState
from kafkapy._core.gate.data_gate import ANSWERED, AT_DEADLINE, LATER, WAITS, DataGate
from kafkapy._core.reactor.reactor import Request
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.types import Clock


class HeldFetch(DelayedOperation):
    """Completes when the gate answers or declines it."""

    __slots__ = ("_clock", "_decline", "_gate", "_is_answered", "_partitions", "_request")

    def __init__(
        self,
        request: Request,
        partitions: Sequence[PartitionState],
        max_wait_ms: int,
        gate: DataGate,
        clock: Clock,
        decline: Callable[[Request], None],
    ) -> None:
        """`decline` serves the request in the Python way, which waits for `waited_ms` less."""
        super().__init__(max_wait_ms)
        self._request = request
        self._partitions = partitions
        self._gate = gate
        self._clock = clock
        self._decline = decline
        self._is_answered = False

    def try_complete(self) -> bool:
        verdict = self._gate.serve_again(self._request, LATER)
        if verdict == WAITS:
            return False
        self._is_answered = verdict == ANSWERED
        return self.force_complete()

    def on_complete(self) -> None:
        request = self._request
        if self._is_answered or self._gate.serve_again(request, AT_DEADLINE) == ANSWERED:
            return
        if all(partition.is_leader for partition in self._partitions):
            request.waited_ms = self._clock.monotonic_ms() - request.received_ms
        else:
            request.waited_ms = self.timeout_ms  # that a partition went ends the wait for all of them
        self._decline(request)
