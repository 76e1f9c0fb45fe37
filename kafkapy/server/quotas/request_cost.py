"""The cost of one request that Python handles, which is charged to the quotas of its client.

The time of a request is the time in which a thread works for it: from its arrival in the interpreter to the end of the
handler, including the encoding of the response, and the work on the handler pool. The time in which the request waits
for replicas, data or a deadline does not count. The time for reading requests from sockets and writing responses to
them is not measured here: compiled code (the gate) measures it in each pass of the reactor's loop, for all requests of
the pass together.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Protocol

from kafkapy.network.handler_pool import Work
from kafkapy.security.principal import Principal
from kafkapy.server.quotas.precedence import FETCH, MUTATION, PRODUCE, REQUEST

PERCENT_PER_NS = 100 / 1e9


class Sensors(Protocol):
    """The sensors of all clients, which record the costs of requests; ClientQuotas implements it."""

    def record(self, key: str, principal: Principal, client_id: str, value: float) -> int:
        """Records that the client has spent `value`: bytes, or the time of a request in percent of a thread's time.

        `key` is the configuration key of the quota, such as producer_byte_rate. Returns the throttle time in
        milliseconds; 0 if nothing limits the client.
        """
        ...

    def record_exempt(self, percent: float) -> None:
        """Records the time of a request that no quota limits, in percent of a thread's time."""
        ...

    def largest_fetch(self, principal: Principal, client_id: str, max_bytes: int) -> int:
        """Returns the smaller one of `max_bytes` and the largest response that the client's quota ever allows."""
        ...

    def note_delay(self, key: str, principal: Principal, client_id: str, throttle_ms: int) -> None:
        """Counts a client's delay of `throttle_ms` milliseconds, which begins now, in the statistics of a quota.

        `key` is the configuration key of the quota, such as producer_byte_rate.
        """
        ...


class RequestCost:
    """Measures the bytes and the threads' time of one request, and charges them to the quotas of its client.

    Only the reactor's thread may use it, except for the work that `timed` returns.
    """

    __slots__ = (
        "_client_id",
        "_delay",
        "_is_charged",
        "_principal",
        "_quotas",
        "_size",
        "_started_ns",
        "_used_ns",
        "is_exempt",
    )

    def __init__(
        self, quotas: Sensors, principal: Principal, client_id: str, size: int, started_ns: int, *, is_exempt: bool
    ) -> None:
        """`started_ns` is the time of `perf_counter_ns` when the interpreter received the request. `is_exempt` is True
        if the quota of time (request_percentage) does not apply to the request.
        """
        self._quotas = quotas
        self._principal = principal
        self._client_id = client_id
        self._size = size
        self._started_ns = started_ns  # the start of the work in progress; 0 while the request waits
        self._used_ns = 0  # the time before the last pause that is not recorded yet
        self._is_charged = False
        self._delay = (0, MUTATION)  # the longest throttle time so far, and the quota that demands it
        self.is_exempt = is_exempt

    def pause(self) -> None:
        """Stops the measurement of time, because the handler has returned and will respond later."""
        if self._started_ns:
            self._used_ns += perf_counter_ns() - self._started_ns
            self._started_ns = 0

    def timed(self, work: Work) -> Work:
        """Returns a function that runs `work` on the handler pool and adds the time it takes to the request's time.

        The function that `work` returns, which the reactor's thread runs afterwards, is measured too.
        """

        def run() -> Callable[[], object]:
            started_ns = perf_counter_ns()
            continuation = work()
            elapsed_ns = perf_counter_ns() - started_ns

            def finish() -> None:
                self._used_ns += elapsed_ns
                if continuation is not None:
                    self._started_ns = perf_counter_ns()
                    continuation()
                self.end()

            return finish

        return run

    def charge_time(self) -> int:
        """Charges the time that the request has used so far to the request quota.

        Returns the throttle time in milliseconds, at most the length of one sample; 0 if the request is exempt from
        the quota. Further calls do nothing and return 0.
        """
        if self._is_charged:
            return 0
        self._is_charged = True
        percent = self._take_percent()
        if self.is_exempt:
            self._quotas.record_exempt(percent)
            return 0
        return self._record(REQUEST, percent)

    def end(self) -> None:
        """Stops the measurement of time. If `charge_time` was called before, charges the time used since that call.

        That charge does not delay this request, but may delay later requests of the client.
        """
        self.pause()
        if self._is_charged and self._used_ns:
            percent = self._take_percent()
            if self.is_exempt:
                self._quotas.record_exempt(percent)
            else:
                self._quotas.record(REQUEST, self._principal, self._client_id, percent)

    def _take_percent(self) -> float:
        used_ns, self._used_ns = self._used_ns, 0
        if self._started_ns:
            now_ns = perf_counter_ns()
            used_ns += now_ns - self._started_ns
            self._started_ns = now_ns
        return used_ns * PERCENT_PER_NS

    def charge_produce(self) -> int:
        """Charges the size of a produce request to producer_byte_rate; returns the throttle time in milliseconds."""
        return self._record(PRODUCE, self._size)

    def charge_fetch(self, size: int) -> int:
        """Charges a fetch response of `size` bytes to consumer_byte_rate; returns the throttle time in milliseconds.

        If the result is not 0, the caller sends a response without records and calls `refund_fetch(size)`.
        """
        return self._record(FETCH, size)

    def refund_fetch(self, size: int) -> None:
        """Withdraws the `size` bytes that `charge_fetch` has recorded."""
        self._quotas.record(FETCH, self._principal, self._client_id, -size)

    def largest_fetch(self, max_bytes: int) -> int:
        """Returns the smaller one of `max_bytes` and the largest response that the client's quota ever allows."""
        return self._quotas.largest_fetch(self._principal, self._client_id, max_bytes)

    def note_delay(self, throttle_ms: int) -> bool:
        """Counts a delay of the client in the statistics of the quota that causes it: the one whose charge returned
        `throttle_ms`.

        Returns False, and counts nothing, if `throttle_ms` is not the longest throttle time that a charge returned.
        """
        longest_ms, key = self._delay
        if throttle_ms != longest_ms:
            return False
        self._quotas.note_delay(key, self._principal, self._client_id, throttle_ms)
        return True

    def _record(self, key: str, value: float) -> int:
        throttle_ms = self._quotas.record(key, self._principal, self._client_id, value)
        if throttle_ms > self._delay[0]:
            self._delay = (throttle_ms, key)
        return throttle_ms
