"""Counts the connections that the leader of the quorum refuses."""

from __future__ import annotations

from kafkapy.quorum.raft.messages import Destination

# A leader is dead if its listener refuses this number of connections in a row.
REFUSALS_OF_A_DEAD_LEADER = 2


class LeaderRefusals:
    """The number of connections that the leader has refused in a row. A follower concludes from it that the leader's
    process has ended.

    A follower whose leader does not respond sends requests to the leader and to the bootstrap servers in turn. A
    bootstrap server with the address of the leader is the leader's process, so that its refusals are counted too.
    """

    def __init__(self) -> None:
        self._leader: Destination | None = None
        self._count = 0

    def follow(self, leader: Destination | None) -> None:
        """Sets the leader, or None while it is not known, and sets the count of refused connections to 0."""
        self._leader = leader
        self._count = 0

    def note(self, destination: Destination, *, is_refused: bool) -> bool:
        """Records the end of a request to `destination`; `is_refused` is True if the connection was refused.

        Returns True if the leader has refused REFUSALS_OF_A_DEAD_LEADER connections in a row: its process has ended. A
        request to an address other than the leader's is not counted, and the result is False.
        """
        leader = self._leader
        if leader is None or (destination.host, destination.port) != (leader.host, leader.port):
            return False
        self._count = self._count + 1 if is_refused else 0
        return self._count >= REFUSALS_OF_A_DEAD_LEADER
