"""The client's side of a fetch session (KIP-227), in which every request after the first one contains only the changes.
This module does no I/O.
"""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

WITHOUT_SESSION = (0, -1)
# With so few partitions a session costs more than naming them in every request.
FEW_PARTITIONS = 8


class FetchPosition(NamedTuple):
    """The fields of one partition in a fetch request; `leader_epoch` is the current leader epoch that the consumer
    knows.
    """

    topic_id: bytes
    fetch_offset: int
    leader_epoch: int


class FetchPlan(NamedTuple):
    """The contents of one fetch request.

    `wanted` has the partitions to add to the session or to change in it. `forgotten` has those to remove from it, with
    the topic ids that the session has for them.
    """

    session_id: int
    epoch: int
    wanted: dict[TopicPartition, FetchPosition]
    forgotten: dict[TopicPartition, bytes]  # -> topic id


class FetchSession:
    """The session of one consumer with one broker: its id, epoch and partitions.

    Call `plan` for every request. After the response call `confirm`, or `refuse` if the broker does not know the
    session; call `lose` if no response has arrived.
    """

    def __init__(self) -> None:
        self._session_id = 0
        self._epoch = 0
        self._held: dict[TopicPartition, FetchPosition] = {}

    def plan(self, positions: dict[TopicPartition, FetchPosition], *, partition_count: int) -> FetchPlan:
        """Returns the next request for these positions.

        `partition_count` is the number of partitions that the consumer reads from the broker. For FEW_PARTITIONS or
        fewer no session is created, and every request has all positions.
        """
        if self._session_id == 0 and partition_count <= FEW_PARTITIONS:
            return FetchPlan(*WITHOUT_SESSION, dict(positions), {})
        if self._epoch == 0:
            self._held = dict(positions)
            return FetchPlan(self._session_id, 0, dict(positions), {})
        changed = {
            topic_partition: position
            for topic_partition, position in positions.items()
            if self._held.get(topic_partition) != position
        }
        # A topic that was deleted and created again has another id; the old id is removed from the session.
        forgotten = {
            topic_partition: sent.topic_id
            for topic_partition, sent in self._held.items()
            if topic_partition not in positions or positions[topic_partition].topic_id != sent.topic_id
        }
        self._held = dict(positions)
        return FetchPlan(self._session_id, self._epoch, changed, forgotten)

    def confirm(self, plan: FetchPlan, session_id: int) -> None:
        """Updates the session after a response without a top-level error.

        `session_id` is the id in the response; 0 means that the broker has not created a session.
        """
        if (plan.session_id, plan.epoch) == WITHOUT_SESSION:
            return
        self._session_id = session_id
        if session_id == 0:
            self._epoch = 0
            self._held = {}
        else:
            self._epoch = 1 if plan.epoch == 2**31 - 1 else plan.epoch + 1

    def refuse(self) -> None:
        """Forgets the session, which the broker no longer knows; the next request creates another session."""
        self._session_id = self._epoch = 0
        self._held = {}

    def lose(self) -> None:
        """Makes the next request replace the session, because it is unknown whether the last request arrived."""
        self._epoch = 0
        self._held = {}
