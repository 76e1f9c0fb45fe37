"""Kafka's StandardAuthorizer: the decisions that follow from the ACLs in the metadata (KIP-801).

    super user                                      allowed
    the ACLs are not loaded yet                     error
    a DENY ACL matches                              denied
    an ALLOW ACL matches                            allowed
    no ACL exists for the resource                  allow.everyone.if.no.acl.found
    otherwise                                       denied

An ACL matches a request by resource (its name, a prefix of it, or `*`), principal (or `User:*`), host (or `*`) and
operation. ALL stands for every operation. An ALLOW of Read, Write, Delete or Alter implies Describe, and one of
AlterConfigs implies DescribeConfigs; a DENY implies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import WILDCARD, Operation, PatternType, Permission, ResourceType
from kafkapy.security.acl_index import AclIndex, Group
from kafkapy.security.audit_log import log_decision
from kafkapy.security.authorizer import Action, Requester
from kafkapy.security.host_address import acl_host
from kafkapy.security.principal import parse_principal

SUPER_USERS_KEY = "super.users"
DEFAULT_KEY = "allow.everyone.if.no.acl.found"
WILDCARD_PRINCIPAL = f"User:{WILDCARD}"
# The name of the resource by which `authorize_by_type` recognizes super users; Kafka's audit log shows it.
ANY_NAME = "hardcode"

_IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
# Operation -> the operations of the ALLOW and of the DENY ACLs that match it.
_ALLOWING = {each: frozenset((Operation.ALL, each, *_IMPLIED_BY.get(each, ()))) for each in Operation}
_DENYING = {each: frozenset((Operation.ALL, each)) for each in Operation}


class Rule(NamedTuple):
    """The reason of a decision: an ACL, or the name of a rule that needs none."""

    is_allowed: bool
    reason: AccessControlEntry | str

    def __str__(self) -> str:
        return self.reason if isinstance(self.reason, str) else f"MatchingAcl(acl={describe_acl(self.reason)})"


SUPER_USER = Rule(True, "SuperUser")
DEFAULT_ALLOW = Rule(True, "DefaultAllow")
DEFAULT_DENY = Rule(False, "DefaultDeny")


class Snapshot(NamedTuple):
    """The state from which the authorizer computes its decisions: the ACLs, and a number that grows with every change
    of them. The object does not change: a change of the ACLs makes a new snapshot.
    """

    generation: int
    acls: AclIndex
    is_loaded: bool


class StandardAuthorizer:
    """The authorizer whose ACLs are in the metadata. Any thread may use it; only one thread calls `load` and
    `set_loaded`.

    `generation` and `index` change with each change of the ACLs. `requests` is the number of decisions since the start,
    and `denied` is the number of decisions that denied an operation.
    """

    def __init__(self) -> None:
        """Creates an authorizer without ACLs and super users, which is not loaded yet."""
        self.super_users: frozenset[str] = frozenset()
        self.no_acl_rule = DEFAULT_DENY
        self.requests = 0
        self.denied = 0
        self._loaded: Mapping[bytes, AccessControlEntry] = {}
        self._snapshot = Snapshot(0, AclIndex(), False)

    def configure(self, configs: Mapping[str, str]) -> None:
        """Reads `super.users` and `allow.everyone.if.no.acl.found`. Raises ConfigError for a malformed principal."""
        self.super_users = parse_super_users(configs.get(SUPER_USERS_KEY, ""))
        is_open = configs.get(DEFAULT_KEY, "").strip().lower() == "true"
        self.no_acl_rule = DEFAULT_ALLOW if is_open else DEFAULT_DENY

    @property
    def generation(self) -> int:
        """A number that grows with every change of the ACLs."""
        return self._snapshot.generation

    @property
    def index(self) -> AclIndex:
        """The newest ACLs."""
        return self._snapshot.acls

    @property
    def is_loaded(self) -> bool:
        """True once the ACLs of the metadata are known; before that only super users get an answer."""
        return self._snapshot.is_loaded

    def load(self, acls: Mapping[bytes, AccessControlEntry]) -> None:
        """Replaces all ACLs with `acls`, which maps the id of each ACL of the newest metadata to the ACL. The mapping
        must not change afterwards."""
        before = self._loaded
        if acls is before:
            return
        added = [entry for acl_id, entry in acls.items() if before.get(acl_id) != entry]
        removed = [entry for acl_id, entry in before.items() if acls.get(acl_id) != entry]
        self._loaded = acls
        if added or removed:
            generation, index, is_loaded = self._snapshot
            self._snapshot = Snapshot(generation + 1, index.changed(added, removed), is_loaded)

    def set_loaded(self) -> None:
        """Declares that `load` has received all ACLs that the cluster has committed.

        Before this call, requests of principals that are not super users raise ApiError.
        """
        generation, index, is_loaded = self._snapshot
        if not is_loaded:
            self._snapshot = Snapshot(generation + 1, index, True)

    def authorize(self, requester: Requester, actions: Sequence[Action]) -> list[bool]:
        """Returns for each action whether it is allowed, and writes the audit log.

        Raises ApiError if the ACLs are not loaded, unless the requester is a super user.
        """
        return [rule.is_allowed for rule in self._rules(requester, actions)]

    def authorize_by_type(self, requester: Requester, operation: Operation, resource_type: ResourceType) -> bool:
        """Returns whether the requester may perform the operation on at least one resource of the type (KIP-679).

        An ACL for all names (`*`) is applied as in `authorize`: one that allows READ also allows DESCRIBE. An ACL for a
        single name or a prefix allows only its own operation here, as in Kafka. Raises ApiError as `authorize` does.
        """
        probe = Action(operation, resource_type, ANY_NAME, resource_count=0, log_if_denied=False)
        if self._rules(requester, [probe])[0].is_allowed:
            return True
        host, principal = acl_host(requester.host), str(requester.principal)
        entries = self._snapshot.acls.of_type(resource_type, _matching_principals(principal))
        return _allows_some_name(
            entry for entry in entries if entry.host in (WILDCARD, host) and entry.operation in _DENYING[operation]
        )

    def _rules(self, requester: Requester, actions: Sequence[Action]) -> list[Rule]:
        principal = str(requester.principal)
        host = acl_host(requester.host)
        snapshot = self._snapshot
        is_super_user = principal in self.super_users
        if not is_super_user and not snapshot.is_loaded:
            raise ApiError(Error.UNKNOWN_SERVER_ERROR, "The authorizer has not loaded the ACLs yet.")
        principals = _matching_principals(principal)
        rules = []
        for action in actions:
            if is_super_user:
                rule = SUPER_USER
            else:
                groups = snapshot.acls.groups(action.resource_type, action.resource_name)
                rule = _decide(groups, principals, host, action.operation, self.no_acl_rule)
            self.requests += 1
            self.denied += not rule.is_allowed
            log_decision(requester, host, action, rule, is_allowed=rule.is_allowed)
            rules.append(rule)
        return rules


def parse_super_users(text: str) -> frozenset[str]:
    """Returns the principals of `super.users`, which are separated by semicolons. Raises ConfigError for
    a malformed principal."""
    try:
        return frozenset(str(parse_principal(user.strip())) for user in text.split(";") if user.strip())
    except ValueError as error:
        raise ConfigError(f"{SUPER_USERS_KEY}={text}: {error}") from None


def describe_acl(entry: AccessControlEntry) -> str:
    """Returns an ACL as Kafka's log shows it: `StandardAcl[resourceType=TOPIC, resourceName=orders, ...]`."""
    return (
        f"StandardAcl[resourceType={ResourceType(entry.resource_type).name}, resourceName={entry.resource_name}, "
        f"patternType={PatternType(entry.pattern_type).name}, principal={entry.principal}, host={entry.host}, "
        f"operation={Operation(entry.operation).name}, permissionType={Permission(entry.permission_type).name}]"
    )


def _matching_principals(principal: str) -> tuple[str, ...]:
    return (principal,) if principal == WILDCARD_PRINCIPAL else (WILDCARD_PRINCIPAL, principal)


def _decide(
    groups: Iterable[Group], principals: Sequence[str], host: str, operation: Operation, no_acl_rule: Rule
) -> Rule:
    """Returns the rule that decides about an operation on a resource.

    The result is the first DENY ACL that applies, in Kafka's order, otherwise the last ALLOW ACL, otherwise the default
    denial. Each of `groups` has the ACLs, by principal, of one resource pattern that matches the resource; if there is
    no group, `no_acl_rule` decides. `principals` are the principals whose ACLs apply to the client.
    """
    allowing, denying = _ALLOWING[operation], _DENYING[operation]
    allowed: AccessControlEntry | None = None
    has_acls = False
    for group in groups:
        has_acls = True
        denying_entries, allowing_entries = [], []
        for principal in principals:
            for entry in group.get(principal, ()):
                if entry.host != WILDCARD and entry.host != host:
                    continue
                if entry.permission_type == Permission.ALLOW:
                    if entry.operation in allowing:
                        allowing_entries.append(entry)
                elif entry.operation in denying:
                    denying_entries.append(entry)
        if denying_entries:
            return Rule(False, min(denying_entries, key=_order))
        if allowing_entries:
            allowed = max(allowing_entries, key=_order)
    if allowed is not None:
        return Rule(True, allowed)
    return DEFAULT_DENY if has_acls else no_acl_rule


def _order(entry: AccessControlEntry) -> tuple[int, str, str]:
    """Returns the sorting key of the ACLs with the same resource pattern and permission, as in Kafka's StandardAcl."""
    return entry.operation, entry.principal, entry.host


def _allows_some_name(entries: Iterable[AccessControlEntry]) -> bool:
    """Returns True if the ALLOW ACLs in `entries` permit at least one resource name that no DENY ACL in `entries`
    covers.

    The caller has selected `entries` by resource type, principal, host and operation; only their resource names are
    compared here.
    """
    allowed: set[tuple[int, str]] = set()
    denied: set[tuple[int, str]] = set()
    for entry in entries:
        chosen = allowed if entry.permission_type == Permission.ALLOW else denied
        chosen.add((entry.pattern_type, entry.resource_name))
    everything = (int(PatternType.LITERAL), WILDCARD)
    if everything in denied:
        return False
    if everything in allowed:
        return True
    denied_prefixes = {name for pattern_type, name in denied if pattern_type == PatternType.PREFIXED}
    for pattern in allowed:
        pattern_type, name = pattern
        if pattern_type == PatternType.LITERAL and pattern in denied:
            continue
        if not any(name[:length] in denied_prefixes for length in range(1, len(name) + 1)):
            return True
    return False
