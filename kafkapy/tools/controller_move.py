"""Moves the active controller to another voter."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafkapy.client.admin import Admin
from kafkapy.errors import ApiError
from kafkapy.tools.bootstrap import await_broker, controller_addresses
from kafkapy.tools.option import ToolError

_WAIT_S = 20.0
_PAUSE_S = 0.1


def move_controller(admin: Admin, target: int, properties: Mapping[str, Any]) -> str:
    """Asks the active controller to resign in favour of a voter, waits until that voter is the active controller, and
    returns a line that says so. Raises ToolError if another node is the active controller in the end.

    `properties` are the client properties with which `admin` was created; if they name brokers, the brokers are asked
    for the addresses of the controllers.
    """
    quorum = admin.describe_metadata_quorum()
    if target not in [each.node_id for each in quorum.voters]:
        voters = ", ".join(str(each.node_id) for each in quorum.voters)
        raise ToolError(f"Node {target} is not a voter: the voters are {voters}")
    if quorum.leader == target:
        return f"Node {target} is the active controller already"
    if "bootstrap.controllers" in properties:
        admin.resign_controller(target)
    else:
        found = {key: value for key, value in properties.items() if key != "bootstrap.servers"}
        found["bootstrap.controllers"] = ",".join(controller_addresses(quorum))
        await_broker(found)
        with Admin(found) as controllers:
            controllers.resign_controller(target)
    leader = _next_leader(admin, quorum.leader_epoch)
    if leader is None:
        raise ToolError(
            f"Node {quorum.leader} is still the active controller: only controllers of kafkapy resign on request"
        )
    if leader != target:
        raise ToolError(f"Node {leader} has become the active controller instead of node {target}: try again")
    return f"Node {target} is the active controller, instead of node {quorum.leader}"


def _next_leader(admin: Admin, epoch: int) -> int | None:
    """Returns the leader of a later epoch than `epoch`, or None if no such leader is elected within `_WAIT_S`
    seconds."""
    deadline_s = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline_s:
        try:
            found = admin.describe_metadata_quorum()
        except ApiError as error:  # during the election
            if not error.error.retriable:
                raise
        else:
            if found.leader_epoch > epoch and found.leader >= 0:
                return found.leader
        time.sleep(_PAUSE_S)
    return None
