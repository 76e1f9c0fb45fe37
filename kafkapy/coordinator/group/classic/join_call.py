"""The fields of a JoinGroup request that the group coordinator uses, with those of the request's connection."""

from __future__ import annotations

from kafkapy.coordinator.group.classic.classic_member import JoinResponder
from kafkapy.named_tuple import NamedTuple


class JoinCall(NamedTuple):
    """One JoinGroup request: its fields, the client of its connection, and the callback that sends its response.

    `protocols` are pairs (name, metadata), the preferred protocol first.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: list[tuple[str, bytes]]
    reason: str
    api_version: int
    respond: JoinResponder
