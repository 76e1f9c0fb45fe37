"""The tables of `kafka-consumer-groups --describe`: offsets and lag, members, or states of groups."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from kafkapy.client.admin import LATEST, Admin, GroupDescription, MemberDescription, OffsetAndMetadata
from kafkapy.client.admin.groups import CONSUMER
from kafkapy.client.cluster import Node
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

MISSING = "-"
Row = TypeVar("Row")
# The name of a column, its width (see `print_table`), and the function that returns its value.
Column = tuple[str, int, Callable[[Row], Any]]
_REBALANCING = frozenset(("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"))


class PartitionRow(NamedTuple):
    """A partition that a group reads, or of which the group has a committed offset.

    A number that is not known is None. The texts about the member that reads the partition are "-" if there is no
    member.
    """

    group: str
    topic: str
    partition: int
    leader_epoch: int | None
    current_offset: int | None
    log_end_offset: int | None
    consumer_id: str
    host: str
    client_id: str

    @property
    def lag(self) -> int | None:
        """The number of records between the committed offset and the end; None if one of these two offsets is
        unknown."""
        if self.current_offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.current_offset


class GroupOffsets:
    """Collects the offsets of groups.

    If `read_committed` is set, the end of a partition is its last stable offset, so that the lag counts the records
    that a consumer of committed records can read.
    """

    def __init__(self, admin: Admin, *, read_committed: bool, timeout: float) -> None:
        self._admin = admin
        self._read_committed = read_committed
        self._timeout = timeout

    def rows(
        self, described: GroupDescription, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> list[PartitionRow]:
        """Returns a row for each partition: first the partitions that members read, then the partitions that no member
        reads.

        Members with more partitions come first. `offsets` has the committed offsets of the group, and `described` its
        members.
        """
        rows: list[PartitionRow] = []
        members = sorted(
            (each for each in described.members if each.partitions), key=lambda each: -len(each.partitions)
        )
        ends = self._ends({partition for each in members for partition in each.partitions} | set(offsets))
        read: set[TopicPartition] = set()
        for member in members:
            read.update(member.partitions)
            reader = member.member_id, member.host, member.client_id
            rows += self._rows_of(described.group_id, member.partitions, offsets, ends, reader)
        rest = [partition for partition in offsets if partition not in read]
        return rows + self._rows_of(described.group_id, rest, offsets, ends, (MISSING, MISSING, MISSING))

    def _rows_of(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        ends: Mapping[TopicPartition, int],
        reader: tuple[str, str, str],
    ) -> list[PartitionRow]:
        rows = []
        for partition in sorted(partitions):
            committed = offsets.get(partition)
            epoch = committed.leader_epoch if committed is not None and committed.leader_epoch >= 0 else None
            current = committed.offset if committed is not None else None
            rows.append(PartitionRow(group, *partition, epoch, current, ends.get(partition), *reader))
        return rows

    def _ends(self, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        found = self._admin.list_offsets(
            dict.fromkeys(sorted(partitions), LATEST), read_committed=self._read_committed, timeout=self._timeout
        )
        for error in found.errors.values():
            if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise error
        return {partition: each.offset for partition, each in found.values.items()}


def print_notice(group: str, state: str | None) -> None:
    """Prints a notice unless the group is stable.

    `state` is None for a group that does not exist. Raises ApiError for an unknown state.
    """
    if state is None:
        print(f"\nError: The consumer group '{group}' does not exist.")
    elif state == "Dead":
        print(f"\nError: Consumer group '{group}' does not exist.")
    elif state == "Empty":
        sys.stdout.flush()
        print(f"\nConsumer group '{group}' has no active members.", file=sys.stderr)
    elif state in _REBALANCING:
        sys.stdout.flush()
        print(f"\nWarning: Consumer group '{group}' is rebalancing.", file=sys.stderr)
    elif state != "Stable":
        raise ApiError(
            Error.UNKNOWN_SERVER_ERROR, f"Expected a valid consumer group state, but found '{state or 'NONE'}'."
        )


def print_offsets(rows: Sequence[PartitionRow], *, verbose: bool) -> None:
    """Prints a table of the offsets of a group; if `verbose` is set, the table has the leader epochs of the committed
    offsets too."""
    columns: list[Column[PartitionRow]] = [
        ("GROUP", 15, lambda row: row.group),
        ("TOPIC", 15, lambda row: row.topic),
        ("PARTITION", -10, lambda row: row.partition),
        ("LEADER-EPOCH", -15, lambda row: row.leader_epoch),
        ("CURRENT-OFFSET", -15, lambda row: row.current_offset),
        ("LOG-END-OFFSET", -15, lambda row: row.log_end_offset),
        ("LAG", -15, lambda row: row.lag),
        ("CONSUMER-ID", 15, lambda row: row.consumer_id),
        ("HOST", 15, lambda row: row.host),
        ("CLIENT-ID", 0, lambda row: row.client_id),
    ]
    print_table([each for each in columns if verbose or each[0] != "LEADER-EPOCH"], rows)


def print_members(described: GroupDescription, *, verbose: bool) -> None:
    """Prints a table of the members of a group; if `verbose` is set, the table has their epochs and the names of their
    partitions too."""
    columns: list[Column[MemberDescription]] = [
        ("GROUP", 15, lambda member: described.group_id),
        ("CONSUMER-ID", 15, lambda member: member.member_id),
    ]
    if any(member.instance_id is not None for member in described.members):
        columns.append(("GROUP-INSTANCE-ID", 17, lambda member: member.instance_id or ""))
    columns += [
        ("HOST", 15, lambda member: member.host),
        ("CLIENT-ID", 15, lambda member: member.client_id),
        ("#PARTITIONS", -15, lambda member: len(member.partitions)),
    ]
    if verbose:
        columns += [
            ("CURRENT-EPOCH", -15, lambda member: member.epoch),
            ("CURRENT-ASSIGNMENT", 20, lambda member: assignment_text(member.partitions)),
            ("TARGET-EPOCH", -15, lambda member: described.assignment_epoch),
            ("TARGET-ASSIGNMENT", 20, lambda member: assignment_text(member.target or ())),
        ]
        if described.type == CONSUMER:
            columns.append(("UPGRADED", 0, lambda member: str(not member.is_classic).lower()))
    members = sorted(described.members, key=lambda member: -len(member.partitions))
    print_table(columns, members, ends_with_a_space=not verbose)


def print_states(groups: Sequence[GroupDescription], *, verbose: bool) -> None:
    """Prints a table of the states of groups; if `verbose` is set, the table has their epochs too."""
    columns: list[Column[GroupDescription]] = [
        ("GROUP", 15, lambda group: group.group_id),
        (
            "COORDINATOR (ID)",
            25,
            lambda group: coordinator_text(group.coordinator),
        ),
        ("ASSIGNMENT-STRATEGY", -20, lambda group: group.assignor or None),
        ("STATE", -20, lambda group: group.state),
    ]
    if verbose:
        columns += [
            ("GROUP-EPOCH", -15, lambda group: group.epoch),
            ("TARGET-ASSIGNMENT-EPOCH", -25, lambda group: group.assignment_epoch),
        ]
    columns.append(("#MEMBERS", 0, lambda group: len(group.members)))
    print_table(columns, groups)


def coordinator_text(coordinator: Node) -> str:
    """Returns the address and id of a group's coordinator, as the tools for groups print it."""
    return f"{coordinator.host}:{coordinator.port}  ({coordinator.node_id})"


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """Returns partitions as `topic:0,1;other:2`, or "-" if there are none."""
    topics: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(str(number))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in sorted(topics.items())) or MISSING


def print_table(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    begins_with_a_line: bool = True,
    ends_with_a_space: bool = False,
) -> None:
    """Prints a line of column names, then a line for each row.

    A column is (name, width, function that returns the column's value in a row). If the width is positive, cells are
    padded with spaces to the longest value of the column, and at least to the width. If the width is negative, cells
    are padded to its absolute value, and longer values are not cut. If the width is 0, cells are not padded.

    If `begins_with_a_line` is set, an empty line precedes the table. If `ends_with_a_space` is set, each line ends with
    a space.
    """
    cells = [[_text(value(row)) for _, _, value in columns] for row in rows]
    widths = [
        max([width, *(len(line[index]) for line in cells)]) if width > 0 else -width
        for index, (_, width, _) in enumerate(columns)
    ]
    if begins_with_a_line:
        print()
    for line in ([name for name, _, _ in columns], *cells):
        padded = " ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        print(f"{padded} " if ends_with_a_space else padded)


def _text(value: Any) -> str:
    return MISSING if value is None else str(value)
