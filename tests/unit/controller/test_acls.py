"""Creation and deletion of ACLs, and the filters that select them."""

from __future__ import annotations

import pytest

from kafkapy.controller.acls import create_acls, delete_acls
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.metadata_records import AccessControlEntryRecord
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.acl_filter import AclFilter
from tests.harness.metadata import bootstrapped, commit, replay

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
ENTRY = AccessControlEntry(TOPIC, "t", LITERAL, "User:ada", "*", Operation.READ, Permission.ALLOW)


def image_with(*entries):
    image = bootstrapped()
    for number, entry in enumerate(entries):
        image = replay(image, AccessControlEntryRecord(id=bytes([number + 1] * 16), **entry._asdict()))
    return image


def test_acls_are_created_once():
    result = create_acls(bootstrapped(), [ENTRY, ENTRY._replace(host="10.0.0.1"), ENTRY])
    assert [each.error for each in result.response] == [0, 0, 0]
    assert len(result.records) == 2
    image = commit(bootstrapped(), result)
    assert set(image.acls.values()) == {ENTRY, ENTRY._replace(host="10.0.0.1")}
    assert create_acls(image, [ENTRY]).records == []


def test_impossible_combinations_of_type_and_operation_are_accepted():
    entry = ENTRY._replace(resource_type=ResourceType.GROUP, operation=Operation.WRITE, host="no address")
    assert len(create_acls(bootstrapped(), [entry]).records) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resource_type": ResourceType.CLUSTER}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": 99}, "Invalid patternType UNKNOWN"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": 99}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "ada"},
            "Could not parse principal from `ada` (no colon is present separating the principal type from the "
            "principal name)",
        ),
    ],
)
def test_an_invalid_acl_is_refused_alone(change, message):
    result = create_acls(bootstrapped(), [ENTRY._replace(**change), ENTRY])
    assert [(each.error, each.message) for each in result.response] == [(Error.INVALID_REQUEST, message), (0, None)]
    assert len(result.records) == 1


def test_too_many_acls_are_refused_together():
    entries = [ENTRY._replace(resource_name=f"t{number}") for number in range(10_001)]
    with pytest.raises(ApiError) as raised:
        create_acls(bootstrapped(), entries)
    assert raised.value.error is Error.POLICY_VIOLATION
    image = image_with()._replace(acls={number.to_bytes(16): entry for number, entry in enumerate(entries)})
    with pytest.raises(ApiError, match="Cannot remove more than 10000 acls in a single delete operation") as raised:
        delete_acls(image, [AclFilter()])
    assert raised.value.error is Error.INVALID_REQUEST
    assert len(delete_acls(image, [AclFilter(TOPIC, "t7", LITERAL)]).records) == 1


def test_each_filter_reports_the_acls_that_it_selects():
    other = ENTRY._replace(principal="User:bob")
    image = image_with(ENTRY, other)
    result = delete_acls(
        image, [AclFilter(principal="User:ada"), AclFilter(TOPIC, "t", LITERAL), AclFilter(operation=99)]
    )
    assert [list(each.entries) for each in result.response] == [[ENTRY], [ENTRY, other], []]
    assert [each.error.error for each in result.response] == [0, 0, Error.INVALID_REQUEST]
    assert result.response[2].error.message == "Unknown entryFilter."
    assert commit(image, result).acls == {}


@pytest.mark.parametrize("code", [{"resource_type": 99}, {"pattern_type": 99}])
def test_a_filter_with_an_unknown_pattern_is_refused(code):
    (only,) = delete_acls(image_with(ENTRY), [AclFilter(**code)]).response
    assert (only.error.error, only.error.message) == (Error.INVALID_REQUEST, "Unknown patternFilter.")


WILDCARD = ENTRY._replace(resource_name="*")
PREFIX = ENTRY._replace(resource_name="to", pattern_type=PREFIXED)
NAMED = ENTRY._replace(resource_name="topic")
ALL = (ENTRY, WILDCARD, PREFIX, NAMED)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (AclFilter(), ALL),
        (AclFilter(TOPIC, "topic", PatternType.MATCH), (WILDCARD, PREFIX, NAMED)),
        (AclFilter(TOPIC, "topic", PatternType.ANY), (NAMED,)),
        (AclFilter(TOPIC, "to", PatternType.ANY), (PREFIX,)),
        (AclFilter(TOPIC, "to", LITERAL), ()),
        (AclFilter(TOPIC, None, PREFIXED), (PREFIX,)),
        (AclFilter(TOPIC, "*", LITERAL), (WILDCARD,)),
        (AclFilter(ResourceType.GROUP), ()),
        (AclFilter(host="*", operation=Operation.READ, permission_type=Permission.ALLOW), ALL),
        (AclFilter(host="10.0.0.1"), ()),
        (AclFilter(operation=Operation.WRITE), ()),
        (AclFilter(permission_type=Permission.DENY), ()),
        (AclFilter(principal="User:*"), ()),
    ],
)
def test_filters_select_as_in_kafka(wanted, expected):
    assert tuple(wanted.select(ALL)) == expected
    assert tuple(delete_acls(image_with(*ALL), [wanted]).response[0].entries) == expected
