"""Groups: listing, describing by either protocol, deleting, and removing members."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client import TopicPartition
from kafkapy.client.admin import Admin, GroupDescription, GroupListing, MemberDescription, Node
from kafkapy.client.consumer_protocol import encode_assignment
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kafkapy.protocol.messages.delete_groups import DeleteGroupsResponse
from kafkapy.protocol.messages.describe_groups import DescribeGroupsResponse
from kafkapy.protocol.messages.leave_group import LeaveGroupResponse
from kafkapy.protocol.messages.list_groups import ListGroupsResponse
from tests.harness.client import MemoryBrokers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NODE = Node(1, "memory", 1)


@pytest.fixture
def brokers():
    harness = MemoryBrokers(node_ids=(1, 2))
    harness.answers |= {
        ApiKey.CONSUMER_GROUP_DESCRIBE: describe_consumer_groups,
        ApiKey.DESCRIBE_GROUPS: describe_classic_groups,
    }
    yield harness
    harness.close()


@pytest.fixture
def admin(brokers):
    with brokers.admin(default_api_timeout_ms=20_000) as made:
        yield made


def describe_consumer_groups(request: Any, version: int) -> ConsumerGroupDescribeResponse:
    def assignment(*numbers: int) -> Any:
        topic = ConsumerGroupDescribeResponse.TopicPartitions(topic_name="t", partitions=list(numbers))
        return ConsumerGroupDescribeResponse.Assignment(topic_partitions=[topic])

    groups = []
    for name in request.group_ids:
        group = ConsumerGroupDescribeResponse.DescribedGroup(group_id=name)
        if name != "new":
            group.error_code = int(Error.GROUP_ID_NOT_FOUND if name != "secret" else Error.GROUP_AUTHORIZATION_FAILED)
        else:
            group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name = (
                "Stable",
                4,
                3,
                "uniform",
            )
            group.members = [
                ConsumerGroupDescribeResponse.Member(
                    member_id="m",
                    instance_id="i",
                    rack_id="r",
                    member_epoch=3,
                    client_id="c",
                    client_host="/h",
                    subscribed_topic_names=["t"],
                    subscribed_topic_regex="x.*",
                    assignment=assignment(0),
                    target_assignment=assignment(0, 1),
                )
            ]
            if version >= 1:
                group.members[0].member_type = 1
        groups.append(group)
    return ConsumerGroupDescribeResponse(groups=groups)


def describe_classic_groups(request: Any, version: int) -> DescribeGroupsResponse:
    groups = []
    for name in request.groups:
        group = DescribeGroupsResponse.DescribedGroup(
            group_id=name, group_state="Stable", protocol_type="connect" if name == "connect" else "consumer",
            protocol_data="range",
        )  # fmt: skip
        if name == "absent":
            group.error_code = int(Error.GROUP_ID_NOT_FOUND)
        member = DescribeGroupsResponse.DescribedGroupMember(
            member_id="m", client_id="c", client_host="/h", member_metadata=b"",
            member_assignment=b"\x00" if name == "broken" else encode_assignment([T1, T0]),
        )  # fmt: skip
        if version >= 4 and name == "static":
            member.group_instance_id = "i"
        group.members = [member]
        groups.append(group)
    return DescribeGroupsResponse(groups=groups)


def refused(call: Any) -> Error:
    with pytest.raises(ApiError) as raised:
        call()
    return raised.value.error


def test_the_groups_of_all_brokers_are_listed(brokers, admin: Admin):
    def list_groups(request, version):
        name = f"g{len(brokers.of(ApiKey.LIST_GROUPS))}"
        group = ListGroupsResponse.ListedGroup(group_id=name, protocol_type="consumer" if name == "g1" else "")
        if version >= 5:
            group.group_state, group.group_type = "Stable", "classic"
        return ListGroupsResponse(groups=[group])

    brokers.answers[ApiKey.LIST_GROUPS] = list_groups
    groups = admin.list_groups(states=["Stable"], types=["classic"])
    assert groups == [GroupListing("g1", "consumer", "Stable", "Classic"), GroupListing("g2", "", "Stable", "Classic")]
    assert [each.is_simple for each in groups] == [False, True]
    assert sorted(each.node_id for each in brokers.asked if each.key == ApiKey.LIST_GROUPS) == [1, 2]
    request = brokers.of(ApiKey.LIST_GROUPS)[0]
    assert (request.states_filter, request.types_filter) == (["Stable"], ["classic"])
    assert [each.protocol_type for each in admin.list_groups(protocol_types=["consumer"])] == []


@pytest.mark.parametrize(("highest", "filters"), [(3, {"states": ["Stable"]}), (4, {"types": ["classic"]})])
def test_filters_that_a_broker_does_not_have_are_refused(brokers, admin: Admin, highest, filters):
    brokers.versions[ApiKey.LIST_GROUPS] = (0, highest)
    brokers.answers[ApiKey.LIST_GROUPS] = lambda request, version: ListGroupsResponse()
    assert refused(lambda: admin.list_groups(**filters)) is Error.UNSUPPORTED_VERSION
    assert admin.list_groups() == []
    if highest == 4:
        assert admin.list_groups(states=["Stable"]) == []


def test_a_group_is_described_by_the_protocol_that_it_has(brokers, admin: Admin):
    results = admin.describe_groups(["new", "classic", "absent", "secret", "connect"])
    assert results["new"] == GroupDescription(
        "new", "Consumer", "Stable", "consumer", "uniform",
        (MemberDescription("m", "i", "c", "/h", (T0,), "r", 3, (T0, T1), False, ("t",), "x.*"),), NODE, 4, 3,
    )  # fmt: skip
    member = MemberDescription("m", None, "c", "/h", (T0, T1))
    assert results["classic"] == GroupDescription("classic", "Classic", "Stable", "consumer", "range", (member,), NODE)
    assert {name: error.error for name, error in results.errors.items()} == {
        "absent": Error.GROUP_ID_NOT_FOUND,
        "secret": Error.GROUP_AUTHORIZATION_FAILED,
        "connect": Error.INCONSISTENT_GROUP_PROTOCOL,
    }


def test_a_malformed_assignment_is_an_error(admin: Admin):
    assert refused(lambda: admin.describe_groups(["broken"])) is Error.UNKNOWN_SERVER_ERROR


def test_a_group_of_another_protocol_type_is_described_on_request(admin: Admin):
    described = admin.describe_classic_groups(["connect"])["connect"]
    assert described.protocol_type == "connect" and described.members[0].partitions == ()


def test_an_old_broker_describes_classic_groups_only(brokers, admin: Admin):
    brokers.versions[ApiKey.CONSUMER_GROUP_DESCRIBE] = (9, 9)
    assert admin.describe_groups(["classic"])["classic"].type == "Classic"


def test_the_type_of_a_member_may_be_unknown(brokers, admin: Admin):
    brokers.versions[ApiKey.CONSUMER_GROUP_DESCRIBE] = (0, 0)
    assert admin.describe_groups(["new"])["new"].members[0].is_classic is None


def test_groups_are_deleted_or_not(brokers, admin: Admin):
    brokers.answers[ApiKey.DELETE_GROUPS] = lambda request, version: DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(
                group_id=each, error_code=int(Error.NON_EMPTY_GROUP) if each == "busy" else 0
            )
            for each in request.groups_names
        ]
    )
    results = admin.delete_groups(["free", "busy"])
    assert results.values == {"free": None} and results.errors["busy"].error is Error.NON_EMPTY_GROUP


def leave(request: Any, version: int) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=int(Error.UNKNOWN_MEMBER_ID) if each.group_instance_id == "absent" else 0,
            )
            for each in request.members
        ]
    )


def test_static_members_are_removed_by_instance_id(brokers, admin: Admin):
    brokers.answers[ApiKey.LEAVE_GROUP] = leave
    results = admin.remove_group_members("g", ["i", "absent"], reason="enough")
    assert results.values == {"i": None} and results.errors["absent"].error is Error.UNKNOWN_MEMBER_ID
    (request,) = brokers.of(ApiKey.LEAVE_GROUP)
    assert request.group_id == "g"
    assert [(each.member_id, each.group_instance_id, each.reason) for each in request.members] == [
        ("", "i", "enough"),
        ("", "absent", "enough"),
    ]


def test_all_members_are_removed_by_their_ids(brokers, admin: Admin):
    brokers.answers[ApiKey.LEAVE_GROUP] = leave
    assert admin.remove_group_members("classic").check() == {"m": None}
    assert admin.remove_group_members("static").check() == {"i": None}


def test_an_old_broker_removes_no_members(brokers, admin: Admin):
    brokers.versions[ApiKey.LEAVE_GROUP] = (0, 2)
    assert refused(lambda: admin.remove_group_members("g", ["i"])) is Error.UNSUPPORTED_VERSION
