"""The groups of consumers that use ZooKeeper: their members, owners and offsets below /consumers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from kafkapy.client.admin import LATEST, Admin
from kafkapy.decimal_text import is_number
from kafkapy.errors import ApiError
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.zookeeper.client import ZooKeeperClient
from kafkapy.tools.zookeeper.errors import NO_NODE, ZooKeeperRequestError
from kafkapy.types import TopicPartition

CONSUMERS_PATH = "/consumers"
TOPICS_PATH = "/brokers/topics"
UNKNOWN = "unknown"
# The time in which the coordinator's offsets must be found; a group that uses only ZooKeeper may have no coordinator.
_COORDINATOR_TIMEOUT_S = 10.0


class OwnedPartition(NamedTuple):
    """A partition that a group reads.

    `offset` is the group's offset and `end` the end offset of the log; each is None if it is not known. `owner` is the
    member that reads the partition, or "none" if no member reads it.
    """

    topic: str
    partition: int
    offset: int | None
    end: int | None
    owner: str

    @property
    def texts(self) -> tuple[str, str, str]:
        """The offset, the end of the log, and the lag as text, "unknown" for a value that is not known."""
        lag = None if self.offset is None or self.end is None else self.end - self.offset
        first, second, third = (UNKNOWN if each is None else str(each) for each in (self.offset, self.end, lag))
        return first, second, third


class OldGroups:
    """Reads and deletes the nodes of groups in ZooKeeper. Not thread-safe.

    The methods raise ZooKeeperRequestError if a request fails.
    """

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client

    def names(self) -> list[str]:
        return self._children(CONSUMERS_PATH)

    def exists(self, group: str) -> bool:
        return self._client.exists(f"{CONSUMERS_PATH}/{group}") is not None

    def is_active(self, group: str) -> bool:
        """Returns whether the group has members now."""
        return bool(self._children(f"{CONSUMERS_PATH}/{group}/ids"))

    def topics(self, group: str) -> list[str]:
        """Returns the topics whose partitions have had owners in the group."""
        return self._children(f"{CONSUMERS_PATH}/{group}/owners")

    def offsets(self, group: str) -> Iterator[tuple[str, int, int]]:
        """Yields the group's offsets in ZooKeeper as (topic, partition, offset), sorted."""
        for topic in self._children(f"{CONSUMERS_PATH}/{group}/offsets"):
            for partition in sorted(int(each) for each in self._partitions(group, "offsets", topic)):
                offset = self.offset(group, topic, partition)
                if offset is not None:
                    yield topic, partition, offset

    def offset(self, group: str, topic: str, partition: int) -> int | None:
        data = self._data(f"{CONSUMERS_PATH}/{group}/offsets/{topic}/{partition}")
        return int(data) if data is not None and is_number(data) else None

    def delete(self, group: str) -> bool:
        """Deletes a group; returns False if it has members, or if a node could not be deleted.

        Raises ZooKeeperRequestError for an unknown group.
        """
        if not self.exists(group):
            raise ZooKeeperRequestError(NO_NODE, f"{CONSUMERS_PATH}/{group}")
        return not self.is_active(group) and self._client.delete_all(f"{CONSUMERS_PATH}/{group}")

    def delete_topic(self, group: str, topic: str) -> bool:
        """Deletes a group's offsets and owners of a topic; deletes the whole group if it has read no other topic.

        Returns False, and deletes nothing, if the group has members.
        """
        if self.topics(group) == [topic]:
            return self.delete(group)
        if self.is_active(group):
            return False
        for kind in ("offsets", "owners"):
            path = f"{CONSUMERS_PATH}/{group}/{kind}/{topic}"
            if self._client.exists(path) is not None:
                self._client.delete_all(path)
        return True

    def owned(self, admin: Admin, group: str, topics: Iterable[str]) -> list[OwnedPartition]:
        """Returns all partitions of the topics, each with the group's offset, the end of the log, and the owner.

        The offset is the offset that the group has committed to its coordinator, or the offset in ZooKeeper if the
        group has committed none.
        """
        partitions = [TopicPartition(topic, each) for topic in topics for each in self._assigned(topic)]
        committed = _committed(admin, group, partitions)
        ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
        found = []
        for partition in partitions:
            topic, number = partition
            offset = committed.get(partition)
            if offset is None:
                offset = self.offset(group, topic, number)
            end = ends[partition].offset if partition in ends else None
            owner = self._data(f"{CONSUMERS_PATH}/{group}/owners/{topic}/{number}") or "none"
            found.append(OwnedPartition(topic, number, offset, end, owner))
        return found

    def _assigned(self, topic: str) -> list[int]:
        """Returns the partition numbers of a topic; [] if the topic does not exist or its node cannot be understood."""
        try:
            value = json.loads(self._data(f"{TOPICS_PATH}/{topic}") or "{}")
        except ValueError:
            return []
        return sorted(int(each) for each in value.get("partitions", {}))

    def _partitions(self, group: str, kind: str, topic: str) -> list[str]:
        return [each for each in self._children(f"{CONSUMERS_PATH}/{group}/{kind}/{topic}") if is_number(each)]

    def _children(self, path: str) -> list[str]:
        """Returns the names of a node's children, sorted; [] if the node does not exist."""
        try:
            return sorted(self._client.children(path)[0])
        except ZooKeeperRequestError as error:
            if error.code != NO_NODE:
                raise
            return []

    def _data(self, path: str) -> str | None:
        try:
            data = self._client.get(path)[0]
        except ZooKeeperRequestError as error:
            if error.code != NO_NODE:
                raise
            return None
        return None if data is None else data.decode(errors="replace")


def _committed(admin: Admin, group: str, partitions: list[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Returns the offsets that the group has committed to its coordinator; {} if there is no coordinator."""
    try:
        found = admin.list_group_offsets({group: partitions}, timeout=_COORDINATOR_TIMEOUT_S).check()[group]
    except ApiError:
        return {}
    return {partition: committed.offset for partition, committed in found.items()}
