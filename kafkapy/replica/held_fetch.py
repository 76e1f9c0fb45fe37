"""A fetch for which the gate has found too little data, and that waits until the gate can answer it.

The gate is the compiled code that serves usual Produce and Fetch requests without the interpreter lock.

The fetch is given to the gate again when there may be more to read, and at its deadline. Until the fetch is answered,
the gate does not change the fetch session or a consumer's position in it. Only the position of a follower is recorded
at once, because it acknowledges records, for which other requests wait. Python can therefore still serve the fetch from
the bytes of the request: if the gate declines the fetch later, because the leader has changed or a transaction has
begun, the request is handled in Python as if it had just arrived, with the rest of its waiting time.
docs/decisions/held-fetch.md shows the sequence.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy._core.gate.data_gate import ANSWERED, WAITS, DataGate
from kafkapy._core.reactor.reactor import Request
from kafkapy.replica.delayed_operations import FetchOperation
from kafkapy.types import Clock


class HeldFetch(FetchOperation):
    """A fetch that the gate, the compiled code that serves usual requests, keeps until it can answer.

    It completes when the gate answers or declines the fetch, or at its deadline. DelayedFetch is the corresponding
    class for fetches that Python code serves.
    """

    __slots__ = ("_clock", "_gate", "_is_answered", "_request", "_serve_in_python")

    def __init__(
        self,
        request: Request,
        max_wait_ms: int,
        gate: DataGate,
        clock: Clock,
        serve_in_python: Callable[[Request], None],
        *,
        is_from_follower: bool,
    ) -> None:
        """Makes the operation for a fetch that compiled code (the gate) serves; it waits for at most `max_wait_ms`.

        If the gate declines the request later, `serve_in_python` is called with the request. This function serves the
        fetch in Python. If the fetch has to wait there, it waits at most for `max_wait_ms` less the time that it has
        waited already (`Request.waited_ms`).
        """
        super().__init__(max_wait_ms, is_from_follower=is_from_follower)
        self._request = request
        self._gate = gate
        self._clock = clock
        self._serve_in_python = serve_in_python
        self._is_answered = False

    def try_complete(self) -> bool:
        verdict = self._gate.serve_held(self._request)
        if verdict == WAITS:
            return False
        self._is_answered = verdict == ANSWERED
        return self.force_complete()

    def on_complete(self) -> None:
        request = self._request
        # A fetch that the gate declined while it was held is presented once more, as at its deadline. If it was
        # declined only because it must not wait any longer, for example after a log roll, the gate now answers it.
        if self._is_answered or self._gate.serve_held(request, at_deadline=True) == ANSWERED:
            return
        if self._gate.has_lost_partition:
            request.waited_ms = self.timeout_ms  # the wait ends for all partitions of the fetch
        else:
            request.waited_ms = self._clock.monotonic_ms() - request.received_ms
        self._serve_in_python(request)
