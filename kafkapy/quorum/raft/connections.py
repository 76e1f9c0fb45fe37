"""The requests in flight and the back-off times of the connections, one for each destination."""

from __future__ import annotations

from kafkapy.quorum.raft.messages import FetchRequest, FetchSnapshotRequest, Request

FOREVER = 2**63 - 1


class Connections:
    """Allows one request in flight for each node id, and one Fetch or FetchSnapshot altogether.

    A request is given up after the request timeout, and when the node's role changes; a response that arrives later is
    ignored. After a failure the connection is not used for the back-off time. All times are in milliseconds.
    """

    __slots__ = ("_backoff_ms", "_expiry_ms", "_in_flight", "_resume_ms", "_timeout_ms", "fetch_deadline_ms")

    def __init__(self, timeout_ms: int, backoff_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._in_flight: dict[int, tuple[Request, int]] = {}
        self._resume_ms: dict[int, int] = {}
        # No request in flight expires before this time.
        self._expiry_ms = FOREVER
        # The time at which a Fetch in flight is given up; 0 if none is in flight.
        self.fetch_deadline_ms = 0

    def reset(self) -> None:
        """Gives up every request in flight and forgets the back-off times."""
        self._in_flight.clear()
        self._resume_ms.clear()
        self.fetch_deadline_ms = 0

    def ready_ms(self, node_id: int, monotonic_ms: int) -> int:
        """Returns the earliest time at which a request may be sent to a node. `monotonic_ms` is the present time; it is
        the result if the request may be sent now.
        """
        in_flight = self._in_flight.get(node_id)
        until_ms = self._resume_ms.get(node_id, 0) if in_flight is None else in_flight[1]
        return max(until_ms, monotonic_ms)

    def expire(self, monotonic_ms: int) -> None:
        """Gives up each request whose timeout has passed, and begins the back-off time of its connection, as after a
        failure.
        """
        if monotonic_ms < self._expiry_ms:
            return
        for node_id in [node_id for node_id, (_, until_ms) in self._in_flight.items() if until_ms <= monotonic_ms]:
            del self._in_flight[node_id]
            self.failed(node_id, monotonic_ms)
        if self.fetch_deadline_ms <= monotonic_ms:
            self.fetch_deadline_ms = 0
        self._expiry_ms = min((until_ms for _, until_ms in self._in_flight.values()), default=FOREVER)

    def is_backing_off(self, node_id: int, monotonic_ms: int) -> bool:
        """Returns True if the back-off time after a failed request to the node has not passed yet."""
        return node_id not in self._in_flight and self._resume_ms.get(node_id, 0) > monotonic_ms

    def is_fetching(self, monotonic_ms: int) -> bool:
        """Returns True if a Fetch or FetchSnapshot is in flight whose timeout has not passed yet."""
        return self.fetch_deadline_ms > monotonic_ms

    def sent(self, node_id: int, request: Request, monotonic_ms: int) -> None:
        """Records that `request` is sent to the node now, so that no other request is sent to it before the response or
        the request timeout.
        """
        self._in_flight[node_id] = (request, monotonic_ms + self._timeout_ms)
        self._expiry_ms = min(self._expiry_ms, monotonic_ms + self._timeout_ms)
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            self.fetch_deadline_ms = monotonic_ms + self._timeout_ms

    def received(self, node_id: int, request: Request) -> bool:
        """Removes a request from the requests in flight, because its response arrived or it failed. Returns False if
        the request was given up before, otherwise True."""
        in_flight = self._in_flight.get(node_id)
        if in_flight is None or in_flight[0] is not request:
            return False
        del self._in_flight[node_id]
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            self.fetch_deadline_ms = 0
        return True

    def failed(self, node_id: int, monotonic_ms: int) -> None:
        """Begins the back-off time of the connection to a node, because a request failed."""
        self.pause(node_id, monotonic_ms + self._backoff_ms)

    def pause(self, node_id: int, until_ms: int) -> None:
        """Leaves the connection to a node unused until `until_ms`."""
        self._resume_ms[node_id] = until_ms
