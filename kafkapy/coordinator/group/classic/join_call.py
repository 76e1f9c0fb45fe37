"""A JoinGroup request in the form in which the group coordinator handles it."""

from __future__ import annotations

from kafkapy.coordinator.group.classic.classic_member import JoinResponder
from kafkapy.named_tuple import NamedTuple


class JoinCall(NamedTuple):
    """One JoinGroup request: its fields, the id and host of the client, and the callback that sends the response.

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
