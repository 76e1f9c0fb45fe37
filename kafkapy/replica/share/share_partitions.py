"""The share partitions of the partitions that this broker leads, and the share fetches that wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkapy.errors import Error
from kafkapy.replica.partition import Partition
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.replica.share.persister import SharePartitionKey
from kafkapy.replica.share.share_fetch import DelayedShareFetch, ShareFetch, read_share_partitions
from kafkapy.replica.share.share_partition import SharePartition, SharePorts
from kafkapy.types import TopicIdPartition


class SharePartitions:
    """Owns the share partitions. Only the thread that owns it may use it.

    A share partition is loaded by its first fetch, and removed when this broker no longer leads the partition, when
    its group has no session here any more, or when another leader or a newer group state has taken over its
    state.
    """

    def __init__(self, replica_manager: ReplicaManager, ports: SharePorts) -> None:
        self._manager = replica_manager
        self._ports = ports
        self._table: dict[SharePartitionKey, SharePartition] = {}

    def all(self) -> Iterable[SharePartition]:
        """Returns the share partitions. Any thread may call it."""
        return list(self._table.copy().values())

    def get(self, key: SharePartitionKey) -> SharePartition | None:
        return self._table.get(key)

    def of_group(self, group_id: str) -> list[SharePartition]:
        return [each for key, each in self._table.items() if key.group_id == group_id]

    def find_or_load(self, group_id: str, topic_id_partition: TopicIdPartition) -> SharePartition | Error:
        """Returns the share partition, which may still be loading.

        Returns the error if this broker does not host or lead the partition, if it has another topic id, or if the load
        has failed at once.
        """
        key = SharePartitionKey(group_id, topic_id_partition.topic_id, topic_id_partition.partition)
        found = self._table.get(key)
        if found is not None:
            return found
        partition = self._manager.find_partition(topic_id_partition.topic_partition)
        if isinstance(partition, Error):
            return partition
        if not partition.is_leader:
            return Error.NOT_LEADER_OR_FOLLOWER
        if partition.topic_id != topic_id_partition.topic_id:
            return Error.UNKNOWN_TOPIC_ID
        found = SharePartition(key, partition, self._ports, self._on_change, self._remove)
        self._table[key] = found
        found.load()
        return self._table.get(key) or found.error

    def fetch(self, fetch: ShareFetch, partitions: Sequence[SharePartition]) -> None:
        """Responds to the fetch when enough records can be acquired, or after its `max_wait_ms`."""
        operation = DelayedShareFetch(fetch, partitions)
        if fetch.max_wait_ms <= 0 or fetch.max_records <= 0 or fetch.max_bytes <= 0:
            fetch.on_results(read_share_partitions(fetch, partitions))
            return
        keys: list[object] = []
        for each in partitions:
            keys += (each.key, each.partition.topic_partition)
            each.partition.watch_fetch(is_from_follower=False)
        self._manager.delayed_operations.fetch.try_complete_else_watch(operation, keys)

    # -- events

    def on_leadership(self, led: Iterable[Partition], followed: Iterable[Partition]) -> None:
        """Fences the share partitions whose partitions this broker no longer leads, or leads in a new epoch.

        `led` and `followed` are the partitions whose leader or leader epoch has changed.
        """
        if not self._table:
            return
        changed = {partition.topic_partition for partition in (*led, *followed)}
        for each in list(self._table.values()):
            if each.partition.topic_partition in changed and (
                not each.partition.is_leader or each.partition.leader_epoch != each.leader_epoch
            ):
                each.fence(Error.NOT_LEADER_OR_FOLLOWER)

    def forget_topics(self, topic_ids: Iterable[bytes]) -> None:
        """Removes the share partitions of deleted topics."""
        gone = frozenset(topic_ids)
        for each in list(self._table.values()):
            if each.key.topic_id in gone:
                each.fence(Error.UNKNOWN_TOPIC_OR_PARTITION)

    def forget_group(self, group_id: str) -> None:
        """Removes the share partitions of a group that has no session here any more."""
        for each in self.of_group(group_id):
            each.fence(Error.UNKNOWN_TOPIC_OR_PARTITION)

    def forget_all(self) -> None:
        """Removes all share partitions, because share groups are no longer served."""
        for each in list(self._table.values()):
            each.fence(Error.UNKNOWN_TOPIC_OR_PARTITION)

    def _remove(self, share_partition: SharePartition) -> None:
        if self._table.get(share_partition.key) is share_partition:
            del self._table[share_partition.key]

    def _on_change(self, share_partition: SharePartition) -> None:
        self._manager.delayed_operations.fetch.check_and_complete(share_partition.key)
