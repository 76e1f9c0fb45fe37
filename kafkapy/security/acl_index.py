"""An immutable index of ACLs, which finds the ACLs that apply to a resource without looking at any other resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import WILDCARD, PatternType

# The ACLs of one resource pattern, by principal. No group is empty.
Group = dict[str, tuple[AccessControlEntry, ...]]
# (resource type, name or prefix) -> the ACLs with this pattern
Groups = dict[tuple[int, str], Group]


class AclIndex:
    """The ACLs of a cluster by resource pattern and principal. An index does not change, so that any thread may use it.

    `changed` returns a new index. The ACLs of unchanged resource patterns are not copied: both indexes refer to the
    same objects.
    """

    __slots__ = ("_lengths", "_literal", "_prefixed", "_size")

    def __init__(self) -> None:
        self._literal: Groups = {}
        self._prefixed: Groups = {}
        # resource type -> the lengths of the prefixes that occur, the longest first
        self._lengths: dict[int, tuple[int, ...]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[AccessControlEntry]:
        for groups in (self._literal, self._prefixed):
            for group in groups.values():
                for entries in group.values():
                    yield from entries

    def changed(self, added: Iterable[AccessControlEntry], removed: Iterable[AccessControlEntry]) -> Self:
        """Returns an index with the ACLs `added` and without the ACLs `removed`. This index must contain all of
        `removed`."""
        changes: dict[bool, dict[tuple[int, str], list[tuple[AccessControlEntry, bool]]]] = {False: {}, True: {}}
        index = type(self)()
        index._size = self._size
        for entries, is_added in ((removed, False), (added, True)):
            for entry in entries:
                is_prefixed = entry.pattern_type == PatternType.PREFIXED
                key = (entry.resource_type, entry.resource_name)
                changes[is_prefixed].setdefault(key, []).append((entry, is_added))
                index._size += 1 if is_added else -1
        index._literal = _changed(self._literal, changes[False])
        index._prefixed = _changed(self._prefixed, changes[True])
        index._lengths = _prefix_lengths(index._prefixed) if changes[True] else self._lengths
        return index

    def groups(self, resource_type: int, name: str) -> list[Group]:
        """Returns the ACLs that apply to a resource: a list with one dict for each resource pattern that matches its
        name.

        Each dict maps principals to the ACLs that have this pattern. The order is Kafka's order of the
        patterns: the literal name, then the prefixes from the longest to the shortest, then the wildcard.
        """
        found = []
        group = self._literal.get((resource_type, name))
        if group is not None:
            found.append(group)
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                group = self._prefixed.get((resource_type, name[:length]))
                if group is not None:
                    found.append(group)
        if name != WILDCARD:
            group = self._literal.get((resource_type, WILDCARD))
            if group is not None:
                found.append(group)
        return found

    def of_type(self, resource_type: int, principals: Iterable[str]) -> Iterator[AccessControlEntry]:
        """Yields the ACLs of these principals on resources of one type."""
        for groups in (self._literal, self._prefixed):
            for (kind, _), group in groups.items():
                if kind == resource_type:
                    for principal in principals:
                        yield from group.get(principal, ())


def _changed(groups: Groups, changes: dict[tuple[int, str], list[tuple[AccessControlEntry, bool]]]) -> Groups:
    if not changes:
        return groups
    result = dict(groups)
    for key, entries in changes.items():
        group = dict(result.get(key, ()))
        for entry, is_added in entries:
            present = group.get(entry.principal, ())
            if is_added:
                group[entry.principal] = (*present, entry)
                continue
            position = present.index(entry)
            left = present[:position] + present[position + 1 :]
            if left:
                group[entry.principal] = left
            else:
                del group[entry.principal]
        if group:
            result[key] = group
        else:
            result.pop(key, None)
    return result


def _prefix_lengths(prefixed: Groups) -> dict[int, tuple[int, ...]]:
    lengths: dict[int, set[int]] = {}
    for resource_type, prefix in prefixed:
        lengths.setdefault(resource_type, set()).add(len(prefix))
    return {resource_type: tuple(sorted(found, reverse=True)) for resource_type, found in lengths.items()}
