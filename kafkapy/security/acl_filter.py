"""Filters of ACLs, with which DescribeAcls and DeleteAcls select them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkapy.named_tuple import NamedTuple
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import WILDCARD, Operation, PatternType, Permission, ResourceType


class AclFilter(NamedTuple):
    """A filter of ACLs. A field that is ANY or None matches every ACL.

    The pattern type MATCH selects the ACLs that apply to the resource `resource_name`: literal, prefixed and wildcard
    ones.
    """

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission_type: int = Permission.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        """Returns whether the filter selects the ACL."""
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self.pattern_type in (PatternType.ANY, PatternType.MATCH, entry.pattern_type)
            and self._matches_name(entry)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission_type in (Permission.ANY, entry.permission_type)
        )

    def select(self, entries: Iterable[AccessControlEntry]) -> Iterator[AccessControlEntry]:
        """Yields the ACLs that the filter matches."""
        return (entry for entry in entries if self.matches(entry))

    def _matches_name(self, entry: AccessControlEntry) -> bool:
        name = self.resource_name
        if name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return name == entry.resource_name
        if entry.pattern_type == PatternType.PREFIXED:
            return name.startswith(entry.resource_name)
        return entry.resource_name in (name, WILDCARD)
