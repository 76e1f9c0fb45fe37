"""The share coordinator of this broker: runs each request on the shard of its share partition, and responds when the
change is durable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

from kafkapy.config.broker_keys import BrokerKeys
from kafkapy.coordinator.coordinator_log import CoordinatorLog
from kafkapy.coordinator.partitioning import coordinator_partition
from kafkapy.coordinator.record import CoordinatorResult
from kafkapy.coordinator.runtime import CoordinatorRuntime, ErrorResponder
from kafkapy.coordinator.share.share_shard import ShareShard
from kafkapy.errors import ApiError
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.partition import Partition
from kafkapy.replica.share.persister import OnDone, PersistedState, SharePartitionKey, StateSummary, StateWrite
from kafkapy.types import Clock, TopicPartition

R = TypeVar("R")

# The interval at which old snapshots are replaced, and records that are no longer needed are deleted.
PRUNE_INTERVAL_MS = 300_000
# (partition of __share_group_state, offset): deletes the records below the offset. May raise ApiError.
Prune = Callable[[TopicPartition, int], object]


class ShareCoordinator:
    """The share coordinator, which owns the runtime of `__share_group_state`. Only the reactor's thread may use it;
    nothing blocks.

    Each method for a request takes callbacks and calls one of them exactly once, perhaps before the method returns.
    """

    def __init__(
        self,
        config: BrokerKeys,
        *,
        log: CoordinatorLog,
        prune: Prune,
        schedule: Schedule,
        clock: Clock,
        image: Callable[[], MetadataImage],
    ) -> None:
        """Creates a coordinator that leads no partition yet.

        `prune` deletes the records of a partition of `__share_group_state` below an offset. `image` returns the newest
        metadata.
        """
        self._config = config
        self._image = image
        self._prune = prune
        self._schedule = schedule
        self._timer: TimerEntry | None = None
        self.pruned_offsets: dict[int, int] = {}
        self._runtime: CoordinatorRuntime[ShareShard] = CoordinatorRuntime(
            SHARE_GROUP_STATE_TOPIC,
            log=log,
            make_shard=lambda context: ShareShard(
                context, image, lambda: int(config.share_coordinator_snapshot_update_records_per_snapshot)
            ),
            schedule=schedule,
            clock=clock,
            load_buffer_bytes=int(config.share_coordinator_load_buffer_size),
            on_elected=self._start_timer,
        )

    # -- leadership

    def partition_for(self, key: SharePartitionKey) -> int:
        """Returns the partition of `__share_group_state` that has the share partition's state."""
        topic = self._image().topics.by_name.get(SHARE_GROUP_STATE_TOPIC)
        count = self._config.share_coordinator_state_topic_num_partitions if topic is None else len(topic.partitions)
        return coordinator_partition(key.coordinator_key, int(count))

    def is_coordinator_of(self, partition: int) -> bool:
        """Returns whether this broker coordinates the share partitions of this partition of `__share_group_state`, even
        if its log is still being loaded."""
        return self._runtime.is_coordinator_of(partition)

    def on_leadership(self, led: Iterable[Partition], followed: Iterable[Partition]) -> None:
        """Begins to load the partitions in `led`, which this broker leads now, and unloads the partitions in
        `followed`, which it no longer leads. Partitions of topics other than `__share_group_state` are ignored."""
        self._runtime.on_leadership(led, followed)

    def elect(self, partition: int, leader_epoch: int) -> None:
        """Begins to load the partition of `__share_group_state`, which this broker now leads."""
        self._runtime.elect(partition, leader_epoch)

    def forget_topics(self, topic_ids: Collection[bytes]) -> None:
        """Deletes the states of the share partitions of the deleted topics `topic_ids`."""
        self._runtime.execute_on_all(lambda shard: shard.forget_topics(topic_ids))

    def shutdown(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._runtime.shutdown()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self._schedule(PRUNE_INTERVAL_MS, self._prune_and_snapshot)

    def _prune_and_snapshot(self) -> None:
        self._timer = self._schedule(PRUNE_INTERVAL_MS, self._prune_and_snapshot)
        self.prune()
        self._runtime.execute_on_all(lambda shard: shard.snapshot_cold())

    def prune(self) -> None:
        """Deletes the records of `__share_group_state` that are older than the newest snapshots of all share
        partitions."""
        for partition, shard in self._runtime.loaded_partitions():
            offset = shard.redundant_offset()
            if not offset or offset == self.pruned_offsets.get(partition):
                continue
            try:
                self._prune(TopicPartition(SHARE_GROUP_STATE_TOPIC, partition), offset)
            except ApiError:
                continue  # The leadership is moving; the next leader prunes.
            self.pruned_offsets[partition] = offset

    def shards(self) -> Iterator[tuple[int, ShareShard]]:
        """Yields (partition, shard) of each loaded partition. Any thread may call it."""
        return self._runtime.loaded_partitions()

    # -- requests

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, on_done: OnDone) -> None:
        self._execute(
            key,
            lambda shard: shard.initialize(key, state_epoch, start_offset),
            lambda error: on_done(error, None),
            on_done,
        )

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        on_state: Callable[[PersistedState], None],
        on_error: ErrorResponder,
    ) -> None:
        self._execute(key, lambda shard: shard.read(key, leader_epoch), on_state, on_error)

    def write(self, key: SharePartitionKey, change: StateWrite, on_done: OnDone) -> None:
        self._execute(key, lambda shard: shard.write(key, change), lambda error: on_done(error, None), on_done)

    def delete(self, key: SharePartitionKey, on_done: OnDone) -> None:
        self._execute(key, lambda shard: shard.delete(key), lambda error: on_done(error, None), on_done)

    def summarize(
        self, key: SharePartitionKey, on_summary: Callable[[StateSummary], None], on_error: ErrorResponder
    ) -> None:
        self._execute(key, lambda shard: shard.summarize(key), on_summary, on_error)

    def _execute(
        self,
        key: SharePartitionKey,
        operation: Callable[[ShareShard], CoordinatorResult[R]],
        on_response: Callable[[R], None],
        on_error: ErrorResponder,
    ) -> None:
        self._runtime.execute(self.partition_for(key), operation, on_response, on_error)
