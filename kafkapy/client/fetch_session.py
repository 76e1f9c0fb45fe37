"""A consumer's side of a fetch session (KIP-227): after the first request only what has changed is named.  Pure."""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.types import TopicPartition

WITHOUT_SESSION = (0, -1)
# Naming so few partitions costs less than a session does.
FEW_PARTITIONS = 8


class FetchPosition(NamedTuple):
    """What a fetch says of a partition."""

    topic_id: bytes
    fetch_offset: int
    leader_epoch: int


class FetchPlan(NamedTuple):
    """One request: who it is in the session, what it names, what the session is to forget."""

    session_id: int
    epoch: int
    wanted: dict[TopicPartition, FetchPosition]
    forgotten: dict[TopicPartition, bytes]  # -> topic id


class FetchSession:
    """Owns what the broker's session of this consumer holds, as far as it has been confirmed or asked for.

    Use: `plan`, then `confirm` or `refuse` or `lose`.
    """

    def __init__(self) -> None:
        self._session_id = 0
        self._epoch = 0
        self._held: dict[TopicPartition, FetchPosition] = {}

    def plan(self, positions: dict[TopicPartition, FetchPosition], *, partitions_here: int) -> FetchPlan:
        """The next request for these positions; `partitions_here`: how many this consumer reads from the broker."""
        if self._session_id == 0 and partitions_here <= FEW_PARTITIONS:
            return FetchPlan(*WITHOUT_SESSION, dict(positions), {})
        if self._epoch == 0:
            self._held = dict(positions)
            return FetchPlan(self._session_id, 0, dict(positions), {})
        changed = {where: position for where, position in positions.items() if self._held.get(where) != position}
        # A topic made anew has another id: the old one leaves the session.
        forgotten = {
            where: held.topic_id
            for where, held in self._held.items()
            if where not in positions or positions[where].topic_id != held.topic_id
        }
        self._held = dict(positions)
        return FetchPlan(self._session_id, self._epoch, changed, forgotten)

    def confirm(self, plan: FetchPlan, session_id: int) -> None:
        """The broker has answered without an error of the whole request."""
        if (plan.session_id, plan.epoch) == WITHOUT_SESSION:
            return
        self._session_id = session_id
        if session_id == 0:
            self._epoch = 0
            self._held = {}
        else:
            self._epoch = 1 if plan.epoch == 2**31 - 1 else plan.epoch + 1

    def refuse(self) -> None:
        """The broker does not know the session any more: the next request begins one."""
        self._session_id = self._epoch = 0
        self._held = {}

    def lose(self) -> None:
        """Nobody knows whether the request arrived: the next one ends the session and begins another."""
        self._epoch = 0
        self._held = {}
