"""The times at which the sessions of ZooKeeper's clients expire; they are not stored in the log."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.zookeeper.tree import Session


class SessionClock:
    """The time at which each session expires if its client sends nothing before.

    When another broker begins to serve the tree of znodes, all sessions get their full timeout again, as with a new
    leader of ZooKeeper.
    """

    def __init__(self, sessions: Mapping[int, Session], monotonic_ms: int) -> None:
        self._timeouts_ms: dict[int, int] = {}
        self._deadlines_ms: dict[int, int] = {}
        for session_id, session in sessions.items():
            self.start(session_id, session.timeout_ms, monotonic_ms)

    def __len__(self) -> int:
        return len(self._timeouts_ms)

    def start(self, session_id: int, timeout_ms: int, monotonic_ms: int) -> None:
        self._timeouts_ms[session_id] = timeout_ms
        self._deadlines_ms[session_id] = monotonic_ms + timeout_ms

    def touch(self, session_id: int, monotonic_ms: int) -> None:
        """Sets the session's deadline to its full timeout from now. `monotonic_ms` is the present time.

        Ignores an unknown session.
        """
        timeout_ms = self._timeouts_ms.get(session_id)
        if timeout_ms is not None:
            self._deadlines_ms[session_id] = monotonic_ms + timeout_ms

    def end(self, session_id: int) -> None:
        self._timeouts_ms.pop(session_id, None)
        self._deadlines_ms.pop(session_id, None)

    def expired(self, monotonic_ms: int) -> list[int]:
        """Returns the ids of the sessions whose deadline has come. `monotonic_ms` is the present time."""
        return [session_id for session_id, deadline_ms in self._deadlines_ms.items() if deadline_ms <= monotonic_ms]
