"""CreateAcls, DescribeAcls and DeleteAcls as raw requests: the answers of Apache Kafka 4.3, which kafkapy gives too.

All clients are anonymous; the client at DENIED is refused by an ACL for its address.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.create_acls import CreateAclsRequest
from kafkapy.protocol.messages.delete_acls import DeleteAclsRequest
from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from tests.api_client import ask
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import Flavour

pytestmark = [pytest.mark.timeout(180)]
FLAVOURS = [Flavour.KAFKAPY, pytest.param(Flavour.KAFKA_43, marks=pytest.mark.peer)]
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
BROKER, DENIED, UNKNOWN = 1, "127.0.0.2", 99
CLUSTER = {"resource_type": ResourceType.CLUSTER, "resource_name": "kafka-cluster"}
INVALID = Error.INVALID_REQUEST


class Node:
    """A node that is broker and controller."""

    def __init__(self, cluster: Cluster) -> None:
        self._address = ("127.0.0.1", cluster[BROKER].port)
        self.log = cluster[BROKER].log

    def ask(self, key: ApiKey, request: Any, *, host: str = "127.0.0.1", version: int = 3) -> Any:
        with socket.create_connection(self._address, timeout=30, source_address=(host, 0)) as client:
            return ask(client, key, version, request, response_class(key))

    def create(self, *changes: dict[str, Any], **options: Any) -> list[tuple[int, str | None]]:
        """Creates ACLs, each of which differs from a usual one; returns errors with messages."""
        usual = {
            "resource_type": ResourceType.TOPIC,
            "resource_name": "t",
            "resource_pattern_type": PatternType.LITERAL,
            "principal": "User:ada",
            "host": "*",
            "operation": Operation.READ,
            "permission_type": Permission.ALLOW,
        }
        creations = [CreateAclsRequest.AclCreation(**{**usual, **change}) for change in changes]
        response = self.ask(ApiKey.CREATE_ACLS, CreateAclsRequest(creations=creations), **options)
        return [(each.error_code, each.error_message) for each in response.results]

    def describe(self, **fields: Any) -> set[tuple[Any, ...]]:
        response = self.ask(ApiKey.DESCRIBE_ACLS, DescribeAclsRequest(**filter_of(fields)))
        assert (response.error_code, response.error_message) == (0, "")
        return {
            (each.resource_type, each.resource_name, each.pattern_type, *_values(acl))
            for each in response.resources
            for acl in each.acls
        }

    def delete(self, *filters: dict[str, Any], **options: Any) -> Any:
        wanted = [DeleteAclsRequest.DeleteAclsFilter(**filter_of(fields)) for fields in filters]
        return self.ask(ApiKey.DELETE_ACLS, DeleteAclsRequest(filters=wanted), **options).filter_results


def filter_of(fields: dict[str, Any]) -> dict[str, Any]:
    everything = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }
    assert fields.keys() <= everything.keys()
    return {**everything, **fields}


def _values(acl: Any) -> tuple[Any, ...]:
    return acl.principal, acl.host, acl.operation, acl.permission_type


@pytest.fixture(scope="module", params=FLAVOURS, ids=lambda flavour: flavour.name.lower())
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Cluster(tmp_path_factory.mktemp("node"), [Spec(request.param)], properties=PROPERTIES) as cluster:
        node = Node(cluster)
        everybody = {**CLUSTER, "principal": "User:*", "operation": Operation.ALL}
        denial = {**everybody, "principal": "User:ANONYMOUS", "host": DENIED, "permission_type": Permission.DENY}
        assert node.create(everybody, denial) == [(0, ""), (0, "")]
        yield node


def test_each_new_acl_is_judged_alone(node: Node):
    no_colon = "(no colon is present separating the principal type from the principal name)"
    cases: list[tuple[dict[str, Any], tuple[int, str]]] = [
        ({}, (0, "")),
        ({}, (0, "")),
        ({**CLUSTER, "resource_name": "x"}, (INVALID, "The only valid name for the CLUSTER resource is kafka-cluster")),
        ({"resource_name": ""}, (INVALID, "Invalid empty resource name")),
        ({"principal": "ada"}, (INVALID, f"Could not parse principal from `ada` {no_colon}")),
        ({"principal": ""}, (INVALID, f"Could not parse principal from `` {no_colon}")),
        ({"principal": ":"}, (0, "")),
        ({"operation": UNKNOWN}, (INVALID, "Invalid operation UNKNOWN")),
        ({"resource_type": UNKNOWN, "principal": "ada"}, (INVALID, "Invalid resourceType UNKNOWN")),
        ({"resource_pattern_type": UNKNOWN}, (INVALID, "Invalid patternType UNKNOWN")),
        ({"permission_type": UNKNOWN}, (INVALID, "Invalid permissionType UNKNOWN")),
        ({"resource_type": ResourceType.GROUP, "operation": Operation.WRITE}, (0, "")),
        ({"host": "nonsense"}, (0, "")),
        ({"host": ""}, (0, "")),
        ({**CLUSTER, "resource_pattern_type": PatternType.PREFIXED}, (0, "")),
    ]
    assert node.create(*(change for change, _ in cases)) == [expected for _, expected in cases]
    assert node.create() == []
    assert len(node.describe(resource_type_filter=ResourceType.TOPIC, resource_name_filter="t")) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"resource_type": ResourceType.ANY},
        {"resource_pattern_type": PatternType.ANY},
        {"resource_pattern_type": PatternType.MATCH},
        {"operation": Operation.ANY},
        {"permission_type": Permission.ANY},
    ],
)
def test_a_creation_with_an_element_of_filters_fails_as_a_whole(node: Node, change):
    assert node.create({"resource_name": "never"}, change) == [(Error.UNKNOWN_SERVER_ERROR, None)] * 2
    assert node.describe(resource_name_filter="never") == set()


def test_unknown_elements_close_the_connection(node: Node):
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        with pytest.raises(ConnectionError):
            node.create({field: 0})
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        with pytest.raises(ConnectionError):
            node.describe(**{field: 0})
        with pytest.raises(ConnectionError):
            node.delete({field: 0})


def test_filters_select_acls(node: Node):
    literal, prefixed, wildcard = (
        {"resource_type": ResourceType.TRANSACTIONAL_ID, "resource_name": name, "resource_pattern_type": kind}
        for name, kind in (("txn-1", PatternType.LITERAL), ("txn", PatternType.PREFIXED), ("*", PatternType.LITERAL))
    )
    assert node.create(literal, prefixed, wildcard) == [(0, "")] * 3

    def names(**fields: Any) -> set[str]:
        return {entry[1] for entry in node.describe(resource_type_filter=ResourceType.TRANSACTIONAL_ID, **fields)}

    assert names() == {"txn-1", "txn", "*"}
    assert names(resource_name_filter="txn-1", pattern_type_filter=PatternType.MATCH) == {"txn-1", "txn", "*"}
    assert names(resource_name_filter="txn", pattern_type_filter=PatternType.MATCH) == {"txn", "*"}
    assert names(resource_name_filter="txn") == {"txn"}
    assert names(resource_name_filter="txn", pattern_type_filter=PatternType.LITERAL) == set()
    assert names(pattern_type_filter=PatternType.PREFIXED) == {"txn"}
    assert names(principal_filter="User:bob") == names(host_filter="10.0.0.1") == names(operation=UNKNOWN) == set()
    assert names(pattern_type_filter=UNKNOWN) == set()
    for version in (1, 2):
        wanted = DescribeAclsRequest(**filter_of({"resource_type_filter": ResourceType.TRANSACTIONAL_ID}))
        assert len(node.ask(ApiKey.DESCRIBE_ACLS, wanted, version=version).resources) == 3


def test_each_filter_of_a_deletion_has_a_result(node: Node):
    eve, everything = {"principal": "User:eve"}, {"principal_filter": "User:eve"}
    assert node.create(eve, {**eve, "host": "10.0.0.1"}) == [(0, "")] * 2
    results = node.delete(
        everything,
        {**everything, "host_filter": "10.0.0.1"},
        {"operation": UNKNOWN},
        {"permission_type": UNKNOWN},
        {"pattern_type_filter": UNKNOWN},
        {"resource_type_filter": UNKNOWN},
        {"principal_filter": "User:nobody"},
    )
    assert [(each.error_code, each.error_message, len(each.matching_acls)) for each in results] == [
        (0, None, 2),
        (0, None, 1),
        (INVALID, "Unknown entryFilter.", 0),
        (INVALID, "Unknown entryFilter.", 0),
        (INVALID, "Unknown patternFilter.", 0),
        (INVALID, "Unknown patternFilter.", 0),
        (0, None, 0),
    ]
    (removed,) = results[1].matching_acls
    assert (removed.error_code, removed.error_message) == (0, None)
    assert (removed.resource_type, removed.resource_name, removed.pattern_type) == (2, "t", 3)
    assert _values(removed) == ("User:eve", "10.0.0.1", Operation.READ, Permission.ALLOW)
    assert node.describe(principal_filter="User:eve") == set()
    assert node.delete() == []


def test_a_client_without_permission_changes_and_sees_nothing(node: Node):
    """The messages are not compared: Kafka's contain addresses of Java objects."""
    denied = Error.CLUSTER_AUTHORIZATION_FAILED
    before = node.describe()
    assert [error for error, _ in node.create({"host": "x"}, {}, host=DENIED)] == [denied, denied]
    results = node.delete({}, {"operation": UNKNOWN}, host=DENIED)
    assert [(each.error_code, each.matching_acls) for each in results] == [(denied, [])] * 2
    response = node.ask(ApiKey.DESCRIBE_ACLS, DescribeAclsRequest(**filter_of({})), host=DENIED)
    assert (response.error_code, response.resources) == (denied, [])
    assert node.describe() == before


def test_denials_are_in_the_audit_log(node: Node):
    position = len(node.log())
    node.delete({}, host=DENIED)
    expected = (
        "INFO Principal = User:ANONYMOUS is Denied operation = ALTER from host = 127.0.0.2 on resource = "
        "Cluster:LITERAL:kafka-cluster for request = DeleteAcls with resourceRefCount = 1 based on rule "
        "MatchingAcl(acl=StandardAcl[resourceType=CLUSTER, resourceName=kafka-cluster, patternType=LITERAL, "
        "principal=User:ANONYMOUS, host=127.0.0.2, operation=ALL, permissionType=DENY]) (kafka.authorizer.logger)"
    )
    assert expected in node.log()[position:]


def test_too_many_acls_at_once_are_refused(node: Node):
    entries = [{"resource_name": f"many-{number}"} for number in range(10_001)]
    refused = (Error.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    assert node.create(*entries) == [refused] * len(entries)
    assert set(node.create(*entries[:5001])) == set(node.create(*entries[5001:])) == {(0, "")}
    wanted = {"resource_type_filter": ResourceType.TOPIC, "principal_filter": "User:ada"}
    (result,) = node.delete(wanted)
    assert result.error_code == INVALID
    assert result.error_message == "Cannot remove more than 10000 acls in a single delete operation."
    (result,) = node.delete({**wanted, "resource_name_filter": "many-7"})
    assert len(result.matching_acls) == 1
