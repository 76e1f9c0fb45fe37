"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.protocol.messages.join_group import JoinGroupResponse
from kafkapy.protocol.messages.sync_group import SyncGroupResponse

JoinResponder = Callable[[JoinGroupResponse], None]
SyncResponder = Callable[[SyncGroupResponse], None]


class ClassicMember:
    """Owns what the member said of itself, its assignment, and the request it waits for, if any. Owner thread only.

    `join_responder` and `sync_responder` are the parked requests. `is_new` until its first generation is complete:
    such a member does not know its id yet, sends no heartbeats, and may expire while it waits.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_responder",
        "member_id",
        "protocol_type",
        "protocols",
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
        protocols: list[tuple[str, bytes]],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.join_responder: JoinResponder | None = None
        self.sync_responder: SyncResponder | None = None

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether an expired session timer leaves it in the group: whoever waits for us need not send heartbeats."""
        return not self.is_new and (self.join_responder is not None or self.sync_responder is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its metadata for that protocol; empty when it does not speak it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        """The first of its protocols that is a candidate; it must have one."""
        return next(name for name, _ in self.protocols if name in candidates)
