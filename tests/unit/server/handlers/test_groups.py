"""Membership and administration of groups on the wire, in every version. The answers are Apache Kafka 4.3's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.protocol.messages.sync_group import SyncGroupRequest
from kafkapy.server.handlers.groups import (
    handle_delete_groups,
    handle_describe_groups,
    handle_heartbeat,
    handle_leave_group,
    handle_list_groups,
    handle_sync_group,
)
from tests.harness.group_handler import GroupHandlerHarness


@pytest.mark.parametrize("version", range(10))
def test_join(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    joined = harness.join("g", version)
    if version >= 4:
        assert joined.error_code == Error.MEMBER_ID_REQUIRED
        assert joined.protocol_name == (None if version >= 7 else "")
        assert joined.member_id.startswith("test-")
        joined = harness.join("g", version, member_id=joined.member_id)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id == joined.members[0].member_id
    assert joined.members[0].metadata == b"meta"
    assert joined.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(10))
def test_join_refused(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    for group, member_id, error in [
        ("", "", Error.INVALID_GROUP_ID),
        ("g", "nobody", Error.UNKNOWN_MEMBER_ID),
    ]:
        refused = harness.join(group, version, member_id=member_id)
        assert (refused.error_code, refused.member_id, refused.generation_id) == (error, member_id, -1)
        assert refused.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", range(6))
def test_sync(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    member_id = harness.member_of("g")
    named: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}

    def sync(generation: int, **fields: Any) -> Any:
        request = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, **fields)
        return harness.send(handle_sync_group, request, version).response

    synced = sync(1, **named)
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    assert sync(2, **named).error_code == Error.ILLEGAL_GENERATION
    if version >= 5:
        assert sync(1).error_code == Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(5))
def test_heartbeat(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    member_id = harness.member_of("g")

    def beat(group: str, member: str, generation: int) -> int:
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
        code: int = harness.send(handle_heartbeat, request, version).response.error_code
        return code

    assert beat("g", member_id, 1) == 0
    assert beat("g", member_id, 2) == Error.ILLEGAL_GENERATION
    assert beat("g", "nobody", 1) == Error.UNKNOWN_MEMBER_ID
    assert beat("other", member_id, 1) == Error.UNKNOWN_MEMBER_ID
    assert beat("", member_id, 1) == Error.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_leave(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    member_id = harness.member_of("g")

    def leave(group: str, member: str) -> Any:
        identity = LeaveGroupRequest.MemberIdentity(member_id=member)
        fields: dict[str, Any] = {"members": [identity]} if version >= 3 else {"member_id": member}
        return harness.send(handle_leave_group, LeaveGroupRequest(group_id=group, **fields), version).response

    def error_of(answer: Any) -> int:
        code: int = answer.members[0].error_code if answer.members else answer.error_code
        return code

    assert error_of(leave("other", member_id)) == Error.UNKNOWN_MEMBER_ID
    assert error_of(leave("g", "nobody")) == Error.UNKNOWN_MEMBER_ID
    assert leave("", member_id).error_code == Error.INVALID_GROUP_ID
    left = leave("g", member_id)
    assert (left.error_code, error_of(left), len(left.members)) == (0, 0, 1 if version >= 3 else 0)


@pytest.mark.parametrize("version", range(7))
def test_describe(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    member_id = harness.member_of("g")
    request = DescribeGroupsRequest(groups=["g", "nobody"], include_authorized_operations=version >= 3)
    known, unknown = harness.send(handle_describe_groups, request, version).response.groups
    assert (known.error_code, known.group_state, known.protocol_type, known.protocol_data) == (
        *(0, "Stable"),
        *("consumer", "range"),
    )
    (member,) = known.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "test", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"meta", b"mine")
    assert known.authorized_operations == (3400 if version >= 3 else -(1 << 31))
    if version >= 6:
        assert (unknown.error_code, unknown.error_message) == (Error.GROUP_ID_NOT_FOUND, "Group nobody not found.")
    else:
        assert (unknown.error_code, unknown.group_state) == (0, "Dead")


@pytest.mark.parametrize("version", range(6))
def test_list(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    harness.member_of("g")

    def listed(**filters: Any) -> list[tuple[str, str, str]]:
        answer = harness.send(handle_list_groups, ListGroupsRequest(**filters), version).response
        return [(group.group_id, group.group_state, group.group_type) for group in answer.groups]

    expected = ("g", "Stable" if version >= 4 else "", "classic" if version >= 5 else "")
    assert listed() == [expected]
    if version >= 4:
        assert listed(states_filter=["stable"]) == [expected]
        assert listed(states_filter=["Empty"]) == []
    if version >= 5:
        assert listed(types_filter=["CLASSIC"]) == [expected]
        assert listed(types_filter=["consumer"]) == []


@pytest.mark.parametrize("version", range(3))
def test_delete(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    harness.member_of("busy")
    assert harness.join("empty", 9).error_code == Error.MEMBER_ID_REQUIRED
    request = DeleteGroupsRequest(groups_names=["busy", "nobody", "empty", "empty"])
    results = harness.send(handle_delete_groups, request, version).response.results
    assert {result.group_id: result.error_code for result in results} == {
        "busy": Error.NON_EMPTY_GROUP,
        "nobody": Error.GROUP_ID_NOT_FOUND,
        "empty": 0,
    }
    assert harness.send(handle_delete_groups, DeleteGroupsRequest(groups_names=[]), version).response.results == []
