"""One member of a classic group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kafkapy.protocol.messages.join_group import JoinGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupResponse

JoinResponder = Callable[[JoinGroupResponse], None]
SyncResponder = Callable[[SyncGroupResponse], None]


Protocols = list[tuple[str, bytes]]


class MemberTally:
    """Counts the members of a group whose JoinGroup waits for the next generation, and the members that support each
    protocol.

    The numbers are maintained at every change of a member, because each JoinGroup needs them.
    """

    __slots__ = ("supporters", "waiting")

    def __init__(self) -> None:
        self.waiting = 0  # members that wait for the next generation
        self.supporters: Counter[str] = Counter()  # protocol -> number of members that support it

    def count(self, protocols: Protocols, step: int) -> None:
        for name in {name for name, _ in protocols}:
            self.supporters[name] += step
            if not self.supporters[name]:
                del self.supporters[name]


class ClassicMember:
    """A member of a classic group: its metadata, its assignment and its waiting request, if any. Only the thread that
    owns it may use it.

    `join_responder` and `sync_responder` send the responses of a waiting JoinGroup and SyncGroup. `is_new` is True
    until the response to the member's first JoinGroup is sent. Until then the client sends no heartbeats, and the
    member may expire while its request waits. With JoinGroup versions below 4, the client does not know its member id
    until then.
    """

    __slots__ = (
        "_join_responder",
        "_protocols",
        "_tally",
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_responder",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self._protocols = protocols
        self._tally: MemberTally | None = None
        self.assignment = assignment
        self.is_new = False
        self._join_responder: JoinResponder | None = None
        self.sync_responder: SyncResponder | None = None

    def enter_tally(self, tally: MemberTally) -> None:
        """Adds this member to the counts of `tally`. If another tally counts the member, removes the member from its
        counts first."""
        self.leave_tally()
        tally.count(self._protocols, 1)
        tally.waiting += self._join_responder is not None
        self._tally = tally

    def leave_tally(self) -> None:
        """Removes the member from the counts of the tally that it has entered, if there is one."""
        if self._tally is not None:
            self._tally.count(self._protocols, -1)
            self._tally.waiting -= self._join_responder is not None
            self._tally = None

    @property
    def protocols(self) -> Protocols:
        """The names of the member's protocols with their metadata, in the member's order of preference."""
        return self._protocols

    @protocols.setter
    def protocols(self, protocols: Protocols) -> None:
        if self._tally is not None:
            self._tally.count(self._protocols, -1)
            self._tally.count(protocols, 1)
        self._protocols = protocols

    @property
    def join_responder(self) -> JoinResponder | None:
        return self._join_responder

    @join_responder.setter
    def join_responder(self, responder: JoinResponder | None) -> None:
        if self._tally is not None:
            self._tally.waiting += (responder is not None) - (self._join_responder is not None)
        self._join_responder = responder

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """True if the member remains in the group when its session timer expires, because its JoinGroup or SyncGroup
        waits for a response: such a member need not send heartbeats. Always False for a new member (`is_new`)."""
        return not self.is_new and (self.join_responder is not None or self.sync_responder is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Returns the member's metadata for the protocol, or b"" if the member does not support it or `protocol_name`
        is None."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        """Returns the first of the member's protocols that is in `candidates`; at least one must be."""
        return next(name for name, _ in self.protocols if name in candidates)
