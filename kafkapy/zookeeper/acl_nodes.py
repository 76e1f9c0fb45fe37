"""Kafka's ACLs as znodes: one node for each resource pattern, as Kafka's AclAuthorizer wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType

# The folder of the nodes of each pattern type, and the folders for notifications.
_PATTERN_FOLDERS = {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
CHANGE_FOLDERS = ("/kafka-acl-changes", "/kafka-acl-extended-changes")
# Resource types by the names of their folders.
_TYPES = {
    "Topic": ResourceType.TOPIC,
    "Group": ResourceType.GROUP,
    "Cluster": ResourceType.CLUSTER,
    "TransactionalId": ResourceType.TRANSACTIONAL_ID,
    "DelegationToken": ResourceType.DELEGATION_TOKEN,
    "User": ResourceType.USER,
}
_TYPE_NAMES = {each: name for name, each in _TYPES.items()}
# The types that every release with ACLs knows; 0.10 refuses to start with a folder of another type.
_OLDEST_TYPES = ("Topic", "Group", "Cluster")
# Operations that readers of the nodes do not know.
_HIDDEN_OPERATIONS = frozenset((Operation.TWO_PHASE_COMMIT,))

TYPE_FOLDERS = frozenset(f"{folder}/{name}" for folder in _PATTERN_FOLDERS.values() for name in _TYPES)
EMPTY_FOLDERS = (
    "/kafka-acl",
    *(f"/kafka-acl/{name}" for name in _OLDEST_TYPES),
    "/kafka-acl-extended",
    "/kafka-acl-extended/prefixed",
    *(f"/kafka-acl-extended/prefixed/{name}" for name in _OLDEST_TYPES),
    *CHANGE_FOLDERS,
)


def _words(code: Operation | Permission) -> str:
    """Returns the name of an operation or a permission in Kafka's spelling, such as DescribeConfigs."""
    return "".join(word.capitalize() for word in code.name.split("_"))


_OPERATIONS = {_words(each).lower(): each for each in Operation if each > Operation.ANY}
_PERMISSIONS = {_words(each).lower(): each for each in (Permission.ALLOW, Permission.DENY)}


def acl_values(acls: Iterable[AccessControlEntry]) -> dict[str, dict[str, Any]]:
    """Returns the content of the znodes that represent `acls`: a JSON object for each path of a znode.

    Leaves out an ACL if the name of its resource cannot be the name of a znode, or if readers of such znodes do not
    know its operation.
    """
    values: dict[str, dict[str, Any]] = {}
    for entry in acls:
        if "/" in entry.resource_name or entry.resource_name in (".", "..") or entry.operation in _HIDDEN_OPERATIONS:
            continue
        folder = _PATTERN_FOLDERS[PatternType(entry.pattern_type)]
        path = f"{folder}/{_TYPE_NAMES[ResourceType(entry.resource_type)]}/{entry.resource_name}"
        acl = {
            "principal": entry.principal,
            "permissionType": _words(Permission(entry.permission_type)),
            "operation": _words(Operation(entry.operation)),
            "host": entry.host,
        }
        values.setdefault(path, {"version": 1, "acls": []})["acls"].append(acl)
    return values


def is_acl_node(path: str) -> bool:
    """Returns whether `path`, from which the chroot was removed, is the path of a node with the ACLs of a resource
    pattern."""
    return path.rpartition("/")[0] in TYPE_FOLDERS


def entries_of(path: str, value: Mapping[str, Any]) -> set[AccessControlEntry]:
    """Returns the ACLs in the JSON object `value` of the node at `path`.

    Raises ValueError, KeyError or TypeError if the object or the path is not that of a node with ACLs.
    """
    folder, _, resource_name = path.rpartition("/")
    pattern_folder, _, type_name = folder.rpartition("/")
    (pattern_type,) = (each for each, known in _PATTERN_FOLDERS.items() if known == pattern_folder)
    entries = set()
    for acl in value["acls"] if value else ():
        operation = _OPERATIONS.get(acl["operation"].lower())
        permission = _PERMISSIONS.get(acl["permissionType"].lower())
        if operation is None or permission is None or operation in _HIDDEN_OPERATIONS:
            raise ValueError(f"{acl['permissionType']} {acl['operation']} is no known permission")
        principal, host = str(acl["principal"]), str(acl["host"])
        resource_type = int(_TYPES[type_name])
        entries.add(
            AccessControlEntry(
                resource_type, resource_name, int(pattern_type), principal, host, int(operation), int(permission)
            )
        )
    return entries


def comparable(value: Any) -> Any:
    """Returns the JSON object `value` of a node with its ACLs sorted, so that objects with the same ACLs are equal.

    Returns `value` itself if it is not an object with a list of ACLs.
    """
    if not isinstance(value, dict) or not isinstance(value.get("acls"), list):
        return value
    return {**value, "acls": sorted(json.dumps(acl, sort_keys=True) for acl in value["acls"])}
