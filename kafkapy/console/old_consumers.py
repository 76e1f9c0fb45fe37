"""Groups of old consumers, whose members, owners and offsets are nodes of ZooKeeper below /consumers.

Each reading opens a session and closes it, so that an idle console has none. Its requests, its partitions and its time
are bounded.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TypeVar

from kafkapy.console.cluster_view import SLOW_S, ClusterView, Ends
from kafkapy.console.problem import Problem
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.zookeeper.client import ZooKeeperClient
from kafkapy.tools.zookeeper.connect_string import check_path
from kafkapy.tools.zookeeper.errors import NO_NODE, ConnectError, ZooKeeperRequestError
from kafkapy.tools.zookeeper.old_groups import CONSUMERS_PATH
from kafkapy.types import TopicPartition

T = TypeVar("T")
# The groups of a list, and the partitions of which a list or a group's page shows the offsets.
MOST_OLD_GROUPS = 200
MOST_OLD_PARTITIONS = 5_000
MOST_MEMBERS = 1_000
# The time in which offsets are read, after which a page shows what it has.
OLD_GROUPS_READING_S = 3.0
# A server that does not respond is given up after this time.
ZOOKEEPER_TIMEOUT_MS = 4_000
_LARGEST_OFFSET = (1 << 63) - 1


class OldPartition(NamedTuple):
    """A partition of which a group has an offset or an owner in ZooKeeper.

    `offset` is None if the group has no offset, or if the node of the offset does not contain a number. `committed_ms`
    is the time of the last commit in ms since 1970: the time at which the offset's node was last changed. `owner` is
    the id of the thread that reads the partition, or "" if no thread does.
    """

    partition: TopicPartition
    offset: int | None
    committed_ms: int | None
    owner: str
    ends: Ends = Ends(None, None)

    @property
    def lag(self) -> int | None:
        """The number of offsets from the group's offset to the end of the log; None if one of the two is unknown."""
        return None if self.offset is None or self.ends.end is None else max(self.ends.end - self.offset, 0)


class OldMember(NamedTuple):
    """A consumer of a group: its id, the topics that it reads, and its start in ms since 1970, None if unknown."""

    member_id: str
    subscription: str
    started_ms: int | None


class OldGroup(NamedTuple):
    """A group of old consumers. `partitions` is None if the partitions were not read, because a limit of `_Reader` was
    reached before.

    `members` is the number of its members.
    """

    group: str
    members: int
    partitions: tuple[OldPartition, ...] | None

    @property
    def lag(self) -> int | None:
        """The sum of the known lags; None if no lag is known."""
        known = [each.lag for each in self.partitions or () if each.lag is not None]
        return sum(known) if known else None

    @property
    def committed_ms(self) -> int | None:
        """The time of the last commit of any partition, in ms since 1970; None if no offset has been committed."""
        return max((each.committed_ms for each in self.partitions or () if each.committed_ms is not None), default=None)

    @property
    def owners(self) -> list[str]:
        """The ids of the threads that own partitions, sorted."""
        return sorted({each.owner for each in self.partitions or () if each.owner})


class OldGroups(NamedTuple):
    """The groups in a ZooKeeper: the first MOST_OLD_GROUPS by name, and the number of further ones.

    `refusal` says why the groups cannot be read; it is "" if they were read.
    """

    groups: tuple[OldGroup, ...] = ()
    omitted: int = 0
    refusal: str = ""


def old_groups(view: ClusterView, wanted: str = "") -> OldGroups:
    """Returns the groups whose names contain `wanted`, regardless of upper and lower case. Blocks.

    There are no groups if the cluster has no ZooKeeper. Failures are cached like results, so that a ZooKeeper that does
    not respond delays few pages.
    """
    if not view.zookeeper:
        return OldGroups()
    return view.cached(f"old groups {wanted}", SLOW_S, lambda: _read_groups(view, wanted.lower()))


def _read_groups(view: ClusterView, wanted: str) -> OldGroups:
    try:
        return _in_session(view, lambda reader: reader.groups(wanted))
    except Problem as problem:
        return OldGroups(refusal=problem.text)


def old_group(view: ClusterView, group: str) -> tuple[OldGroup, list[OldMember]]:
    """Returns a group and its members. Blocks.

    Raises Problem if the cluster has no ZooKeeper, or if ZooKeeper cannot be read or does not have the group. Raises
    ValueError for a name that no node in ZooKeeper can have.
    """
    check_path(f"{CONSUMERS_PATH}/{group}")
    if not view.zookeeper:
        raise Problem(404, "The console knows no ZooKeeper of this cluster: it was started without --zookeeper.")

    def read(reader: _Reader) -> tuple[OldGroup, list[OldMember]] | None:
        if "/" in group or reader.children(CONSUMERS_PATH, group) is None:
            return None
        members = reader.members(group)
        return OldGroup(group, len(members), tuple(reader.partitions(group))), members

    found = _in_session(view, read)
    if found is None:
        raise Problem(404, f"There is no group {group!r} in ZooKeeper. It may have been deleted.")
    return found


def _in_session(view: ClusterView, read: Callable[[_Reader], T]) -> T:
    """Returns the result of `read` in a session of its own. Raises Problem if ZooKeeper fails."""
    try:
        client = ZooKeeperClient(view.zookeeper, timeout_ms=ZOOKEEPER_TIMEOUT_MS)
        client.connect(0.0)
    except (ValueError, ConnectError) as error:
        raise Problem(504, f"ZooKeeper at {view.zookeeper} cannot be reached: {error}") from None
    try:
        return read(_Reader(client, view))
    except ZooKeeperRequestError as error:
        raise Problem(502, f"ZooKeeper at {view.zookeeper} refused a request: {error}") from None
    finally:
        client.close()


class _Reader:
    """Reads groups in one session: at most MOST_OLD_PARTITIONS partitions, and for OLD_GROUPS_READING_S seconds."""

    def __init__(self, client: ZooKeeperClient, view: ClusterView) -> None:
        self._client = client
        self._view = view
        self._end_s = time.monotonic() + OLD_GROUPS_READING_S
        self._left = MOST_OLD_PARTITIONS

    @property
    def is_over(self) -> bool:
        """True if the time or the number of partitions is used up, so that no further node is read."""
        return self._left <= 0 or time.monotonic() > self._end_s

    def groups(self, wanted: str) -> OldGroups:
        names = [each for each in self.children(CONSUMERS_PATH) or () if wanted in each.lower()]
        rows: list[tuple[str, int, list[OldPartition] | None]] = []
        for name in names[:MOST_OLD_GROUPS]:
            if self.is_over:
                rows.append((name, 0, None))
                continue
            members = len(self.children(CONSUMERS_PATH, name, "ids") or ())
            rows.append((name, members, self._offsets(name)))
        ends = self._ends([each for _, _, found in rows for each in found or ()])
        groups = [OldGroup(name, members, _with_ends(found, ends)) for name, members, found in rows]
        return OldGroups(tuple(groups), len(names) - len(groups))

    def partitions(self, group: str) -> tuple[OldPartition, ...]:
        found = self._offsets(group)
        return _with_ends(found, self._ends(found)) or ()

    def members(self, group: str) -> list[OldMember]:
        names = (self.children(CONSUMERS_PATH, group, "ids") or [])[:MOST_MEMBERS]
        return [_member(name, self._data(CONSUMERS_PATH, group, "ids", name)[0]) for name in names]

    def _offsets(self, group: str) -> list[OldPartition]:
        """Returns the partitions of a group, sorted by topic and partition, with unknown log ends.

        The list is incomplete if the reader's limits are reached.
        """
        topics = {
            *(self.children(CONSUMERS_PATH, group, "offsets") or ()),
            *(self.children(CONSUMERS_PATH, group, "owners") or ()),
        }
        found: list[OldPartition] = []
        for topic in sorted(topics):
            with_offset = self.children(CONSUMERS_PATH, group, "offsets", topic) or ()
            with_owner = self.children(CONSUMERS_PATH, group, "owners", topic) or ()
            numbers = {int(each) for each in (*with_offset, *with_owner) if each.isascii() and each.isdigit()}
            for number in sorted(numbers):
                if self.is_over:
                    return found
                self._left -= 1
                data, changed_ms = self._data(CONSUMERS_PATH, group, "offsets", topic, str(number))
                owner = self._data(CONSUMERS_PATH, group, "owners", topic, str(number))[0] if with_owner else b""
                text = (owner or b"").decode(errors="replace")
                found.append(OldPartition(TopicPartition(topic, number), _offset(data), changed_ms, text))
        return found

    def _ends(self, partitions: list[OldPartition]) -> dict[TopicPartition, Ends]:
        """Returns the log ends of the partitions that the cluster has.

        A group may also have offsets of a deleted topic; its partitions are left out.
        """
        topics = self._view.topics()
        known = {
            each.partition
            for each in partitions
            if each.partition.topic in topics
            and each.partition.partition < len(topics[each.partition.topic].partitions)
        }
        return self._view.ends(known)

    def children(self, *names: str) -> list[str] | None:
        """Returns the names of a node's children, sorted; None if the node does not exist.

        `names` are the parts of the node's path.
        """
        try:
            return sorted(self._client.children("/".join(names))[0])
        except ZooKeeperRequestError as error:
            if error.code != NO_NODE:
                raise
            return None

    def _data(self, *names: str) -> tuple[bytes | None, int | None]:
        """Returns the data of a node and the time of its last change in ms since 1970; (None, None) if the node does
        not exist.

        `names` are the parts of the node's path.
        """
        try:
            data, stat = self._client.get("/".join(names))
        except ZooKeeperRequestError as error:
            if error.code != NO_NODE:
                raise
            return None, None
        return data, stat.mtime_ms


def _with_ends(
    partitions: list[OldPartition] | None, ends: dict[TopicPartition, Ends]
) -> tuple[OldPartition, ...] | None:
    if partitions is None:
        return None
    return tuple(each._replace(ends=ends.get(each.partition, each.ends)) for each in partitions)


def _offset(data: bytes | None) -> int | None:
    """Returns the offset in a node's data; None if the data is no number from 0 to the largest offset."""
    text = data or b""
    return int(text) if text.isdigit() and len(text) < 20 and int(text) <= _LARGEST_OFFSET else None


def _member(name: str, data: bytes | None) -> OldMember:
    """Returns the member `name` from the JSON in its node.

    If `data` is not the JSON of a member, its `subscription` is "" and its start is unknown.
    """
    try:
        value = json.loads(data or b"")
        topics, pattern = value["subscription"], value.get("pattern", "static")
        text = ", ".join(topics) if pattern == "static" else f"{pattern}: {', '.join(topics)}"
        started = str(value.get("timestamp", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return OldMember(name, "", None)
    return OldMember(
        name, text, int(started) if started.isascii() and started.isdigit() and len(started) < 15 else None
    )
