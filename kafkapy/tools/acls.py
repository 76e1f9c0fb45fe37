"""The tool `kafka-acls`: lists, adds and removes ACLs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from kafkapy.client.admin import AccessControlEntry, AclFilter, Admin
from kafkapy.named_tuple import NamedTuple
from kafkapy.security.acl import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafkapy.security.principal import parse_principal
from kafkapy.tools.acl_options import OPTIONS, operation_of
from kafkapy.tools.bootstrap import admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import Arguments, ToolError, UsageError
from kafkapy.tools.tool import run_tool


class Pattern(NamedTuple):
    """A resource pattern: the resources to which ACLs apply, or which a filter of ACLs selects.

    It has the type of the resources, and their name or a prefix of their names, according to `pattern_type`.
    """

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={self.resource_type.name}, name={self.name}, "
            f"patternType={self.pattern_type.name})"
        )


class Permit(NamedTuple):
    """The part of an ACL that does not concern the resources: principal, host, operation, and whether the operation is
    allowed or denied."""

    principal: str
    host: str
    operation: Operation
    permission_type: Permission

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission_type.name})"
        )


Permits = dict[Pattern, list[Permit]]

CLUSTER = Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
# Flag -> the type of the resources that it names.
_RESOURCE_FLAGS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
_PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


def run(arguments: Arguments) -> int:
    """Carries out the action that the flags name: --add, --remove or --list. Returns the exit code, 0."""
    check_arguments(arguments)
    if arguments.has("add"):
        added = new_permits(arguments)
        with Admin(admin_properties(arguments)) as admin:
            add_acls(admin, added)
    elif arguments.has("remove"):
        removed = permits(arguments)
        with Admin(admin_properties(arguments)) as admin:
            remove_acls(admin, arguments, removed)
    else:
        with Admin(admin_properties(arguments)) as admin:
            list_acls(admin, arguments)
    return 0


def add_acls(admin: Admin, added: Permits) -> None:
    """Creates and prints the ACLs in `added` that do not exist yet, and prints a line for each that exists.

    `added` maps each resource pattern to its ACLs.
    """
    for pattern, granted in added.items():
        existing = set(admin.describe_acls(AclFilter(*pattern)))
        new = []
        for permit in granted:
            if _entry(pattern, permit) in existing:
                print(f"Acl (pattern={pattern}, entry={permit}) already exists.")
            else:
                new.append(permit)
        if new:
            print(f"Adding ACLs for resource `{pattern}`: \n {_lines(new)}\n")
            admin.create_acls([_entry(pattern, permit) for permit in new]).check()


def remove_acls(admin: Admin, arguments: Arguments, removed: Permits) -> None:
    """Deletes the ACLs in `removed`, which maps each resource pattern to its ACLs.

    If the list of a pattern is empty, all ACLs of the pattern are deleted. Unless --force is given, the tool asks the
    user about each pattern, and deletes the ACLs of the pattern only if the user types "y".
    """
    for pattern, granted in removed.items():
        if granted:
            question = (
                f"Are you sure you want to remove ACLs: \n {_lines(granted)}\n from resource filter `{pattern}`? (y/n)"
            )
            filters = [_filter(pattern, permit) for permit in granted]
        else:
            question = f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)"
            filters = [AclFilter(*pattern)]
        if _is_confirmed(arguments, question):
            admin.delete_acls(filters).check()


def list_acls(admin: Admin, arguments: Arguments) -> None:
    """Prints the ACLs of the resources that the flags name, or all ACLs if the flags name none.

    With --principal it prints only the ACLs of the principals given.
    """
    patterns = resource_patterns(arguments)
    filters = [AclFilter(*pattern) for pattern in patterns] or [AclFilter()]
    found = dict.fromkeys(entry for wanted in filters for entry in admin.describe_acls(wanted))
    principals = _principals(arguments, "principal")
    if arguments["json"]:
        print_json([_as_json(each) for each in found if not principals or each.principal in principals])
        return
    if not principals:
        _print_acls(found)
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        _print_acls(each for each in found if each.principal == principal)


def _print_acls(entries: Iterable[AccessControlEntry]) -> None:
    by_pattern: Permits = {}
    for each in entries:
        pattern = Pattern(ResourceType(each.resource_type), each.resource_name, PatternType(each.pattern_type))
        permit = Permit(each.principal, each.host, Operation(each.operation), Permission(each.permission_type))
        by_pattern.setdefault(pattern, []).append(permit)
    for pattern, granted in by_pattern.items():
        print(f"Current ACLs for resource `{pattern}`:\n{_lines(granted)}\n")


def _as_json(entry: AccessControlEntry) -> dict[str, str]:
    return {
        "resource_type": ResourceType(entry.resource_type).name,
        "resource_name": entry.resource_name,
        "pattern_type": PatternType(entry.pattern_type).name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": Operation(entry.operation).name,
        "permission_type": Permission(entry.permission_type).name,
    }


def _lines(granted: Sequence[Permit]) -> str:
    return "\n".join(f"\t{permit}" for permit in granted)


def _entry(pattern: Pattern, permit: Permit) -> AccessControlEntry:
    resource_type, name, pattern_type = pattern
    principal, host, operation, permission_type = permit
    return AccessControlEntry(resource_type, name, pattern_type, principal, host, operation, permission_type)


def _filter(pattern: Pattern, permit: Permit) -> AclFilter:
    return AclFilter(*_entry(pattern, permit))


def _is_confirmed(arguments: Arguments, question: str) -> bool:
    if arguments["force"]:
        return True
    print(question)
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() == "y"


# -- the command line


def check_arguments(arguments: Arguments) -> None:
    """Raises UsageError, with Kafka's text, for flags that contradict each other or are missing."""
    if arguments.has("bootstrap-server") and arguments.has("bootstrap-controller"):
        raise UsageError("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    if not arguments.has("bootstrap-server") and not arguments.has("bootstrap-controller"):
        raise UsageError("One of --bootstrap-server or --bootstrap-controller must be specified")
    if sum(map(arguments.has, ("add", "remove", "list"))) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    arguments.exclude("list", "producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal")
    for name in ("producer", "consumer"):
        arguments.exclude(name, "operation", "deny-principal", "deny-host")
    if arguments.has("principal") and not arguments.has("list"):
        raise UsageError("The --principal option is only available if --list is set")
    if arguments["producer"] and not arguments.has("topic"):
        raise UsageError("With --producer you must specify a --topic")
    if arguments["idempotent"] and not arguments["producer"]:
        raise UsageError("The --idempotent option is only available if --producer is set")
    if arguments["consumer"]:
        is_alone = not arguments["producer"]
        has_other = is_alone and (arguments["cluster"] or arguments.has("transactional-id"))
        if not arguments.has("topic") or not arguments.has("group") or has_other:
            raise UsageError(
                "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id "
                "option should be specified."
            )


def new_permits(arguments: Arguments) -> Permits:
    """Returns the ACLs to add, by resource pattern.

    Raises UsageError if the flags name no principal, or a pattern type that only filters may have (ANY, MATCH).
    """
    pattern_type = _pattern_type(arguments)
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageError(f"A '--resource-pattern-type' value of '{pattern_type.name}' is not valid when adding acls.")
    found = permits(arguments)
    if not all(found.values()):
        raise UsageError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    return found


def permits(arguments: Arguments) -> Permits:
    """Returns the ACLs that the flags name, as lists by resource pattern.

    If the flags name no principal, the lists are empty; an empty list stands for all ACLs of its pattern.
    """
    patterns = resource_patterns(arguments)
    if not patterns:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    found: Permits = {}
    if not arguments["producer"] and not arguments["consumer"]:
        operations = [operation_of(text) for text in arguments.values("operation")]
        granted = _permits(arguments, operations)
        found = {pattern: list(granted) for pattern in patterns}
    if arguments["producer"]:
        _add(found, arguments, patterns, _PRODUCER)
        if arguments["idempotent"]:
            found[CLUSTER] = _permits(arguments, (Operation.IDEMPOTENT_WRITE,))
    if arguments["consumer"]:
        _add(found, arguments, patterns, _CONSUMER)
    _check_operations(found)
    return found


def _add(
    found: Permits,
    arguments: Arguments,
    patterns: Sequence[Pattern],
    operations: Mapping[ResourceType, Sequence[Operation]],
) -> None:
    """Adds the ACLs of --producer or --consumer to `found`.

    `operations` maps each type of resource that a producer, or a consumer, uses to the operations that it needs. The
    ACLs permit these operations on the resources in `patterns`; patterns of other types are ignored.
    """
    for pattern in patterns:
        if pattern.resource_type in operations:
            known = found.setdefault(pattern, [])
            known += [each for each in _permits(arguments, operations[pattern.resource_type]) if each not in known]


def _permits(arguments: Arguments, operations: Iterable[Operation]) -> list[Permit]:
    chosen = list(dict.fromkeys(operations))
    found = []
    for side, permission in (("allow", Permission.ALLOW), ("deny", Permission.DENY)):
        principals = _principals(arguments, f"{side}-principal")
        for principal in principals:
            for host in _hosts(arguments, side):
                found += [Permit(principal, host, operation, permission) for operation in chosen]
    return found


def _hosts(arguments: Arguments, side: str) -> list[str]:
    given = [host.strip() for host in arguments.values(f"{side}-host")]
    return list(dict.fromkeys(given)) or [WILDCARD]


def _principals(arguments: Arguments, flag: str) -> list[str]:
    try:
        return list(dict.fromkeys(str(parse_principal(text.strip())) for text in arguments.values(flag)))
    except ValueError as error:
        raise ToolError(f"{TOOL.error_prefix}{error}") from None


def resource_patterns(arguments: Arguments) -> list[Pattern]:
    """Returns the resource patterns that the flags name.

    With --idempotent or --cluster they include the cluster, if the pattern type is LITERAL.
    """
    pattern_type = _pattern_type(arguments)
    found = [
        Pattern(resource_type, name.strip(), pattern_type)
        for flag, resource_type in _RESOURCE_FLAGS.items()
        for name in arguments.values(flag)
    ]
    if pattern_type is PatternType.LITERAL and (arguments["cluster"] or arguments["idempotent"]):
        found.append(CLUSTER)
    return list(dict.fromkeys(found))


def _pattern_type(arguments: Arguments) -> PatternType:
    pattern_type: PatternType = arguments["resource-pattern-type"]
    return pattern_type


def _check_operations(found: Permits) -> None:
    for pattern, granted in found.items():
        valid = {Operation.ALL, *SUPPORTED_OPERATIONS[pattern.resource_type]}
        if any(permit.operation not in valid for permit in granted):
            shown = ", ".join(operation.name for operation in sorted(valid))
            raise UsageError(f"ResourceType {pattern.resource_type.name} only supports operations [{shown}]")


TOOL = Tool(
    name="acls",
    description="This tool helps to manage acls on kafka.",
    run=run,
    options=OPTIONS,
    error_prefix="Error while executing ACL command: ",
    examples=(
        Example("All ACLs", "--bootstrap-server localhost:9092 --list"),
        Example(
            "Let a user write to a topic",
            "--bootstrap-server localhost:9092 --add --allow-principal User:alice --producer --topic orders",
        ),
        Example(
            "Let a user read all topics with a prefix in one group",
            "--bootstrap-server localhost:9092 --add --allow-principal User:bob --consumer --group reports "
            "--topic orders- --resource-pattern-type prefixed",
        ),
        Example(
            "Remove all ACLs of a topic",
            "--bootstrap-server localhost:9092 --remove --topic orders --force",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
