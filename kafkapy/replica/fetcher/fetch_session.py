"""The follower's side of a fetch session (KIP-227): after the first request only changed partitions are sent.

The caller names the partitions that may have changed, so that the work for a request depends on their number and not on
the number of all partitions. The module performs no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.replica.fetcher.followed_partition import FetchPosition
from kafkapy.types import TopicPartition

_NO_SESSION = 0
_FIRST_EPOCH = 0
_LAST_EPOCH = 2**31 - 1
# The leader has dropped the session, or expects another request of it.
_SESSION_LOST = frozenset({Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH})


class FetchPlan(NamedTuple):
    """The contents of one fetch request: session id and epoch, the partitions to add or change, and the partitions to
    remove."""

    session_id: int
    session_epoch: int
    positions: dict[TopicPartition, FetchPosition]
    forgotten: list[tuple[TopicPartition, bytes]]  # with the topic id that was sent


class FetchSession:
    """The session of one fetcher with its leader. The caller calls `plan` for each request, then `confirm` after a
    response without a top-level error, `fail` after one with such an error, or `lose` if there is no response.

    `held` has the positions that the leader knows once it has received the last planned request.
    """

    def __init__(self) -> None:
        self.held: dict[TopicPartition, FetchPosition] = {}
        self._session_id = _NO_SESSION
        self._epoch = _FIRST_EPOCH

    @property
    def is_full(self) -> bool:
        """True if the next request names all partitions, and begins a session."""
        return self._epoch == _FIRST_EPOCH

    def plan(
        self, candidates: Iterable[TopicPartition], position_of: Callable[[TopicPartition], FetchPosition | None]
    ) -> FetchPlan | None:
        """Returns the next request, or None if there is nothing to fetch.

        `candidates` are the partitions that may have changed since the last plan, or all partitions if `is_full`. A
        partition for which `position_of` returns None is removed from the session.
        """
        if self.is_full:
            self.held = {}
        held = self.held
        changed: dict[TopicPartition, FetchPosition] = {}
        forgotten: list[tuple[TopicPartition, bytes]] = []
        for topic_partition in candidates:
            position = position_of(topic_partition)
            sent = held.get(topic_partition)
            if sent is not None and (position is None or position.topic_id != sent.topic_id):
                forgotten.append((topic_partition, sent.topic_id))
                del held[topic_partition]
            if position is not None and position != sent:
                changed[topic_partition] = held[topic_partition] = position
        if not held and not forgotten:
            return None
        return FetchPlan(self._session_id, self._epoch, changed, forgotten)

    def confirm(self, session_id: int) -> None:
        """Advances the session after a response without a top-level error; `session_id` is the id in the response."""
        if session_id == _NO_SESSION:
            self.refuse()
        else:
            self._epoch = 1 if session_id != self._session_id or self._epoch == _LAST_EPOCH else self._epoch + 1
            self._session_id = session_id

    def fail(self, error: Error) -> bool:
        """Updates the session after a response with the top-level `error`. Returns True if the error concerns only the
        session, so that the next request may be sent at once; False if the caller has to wait for the back-off time
        first.
        """
        if error is Error.FETCH_SESSION_ID_NOT_FOUND:
            self.refuse()
        else:
            self.lose()
        return error in _SESSION_LOST

    def refuse(self) -> None:
        """Forgets the session, because the leader does not have it; the next request begins a new session."""
        self._session_id, self._epoch = _NO_SESSION, _FIRST_EPOCH

    def lose(self) -> None:
        """Makes the next request replace the session, because it is unknown whether the last request reached the
        leader."""
        self._epoch = _FIRST_EPOCH
