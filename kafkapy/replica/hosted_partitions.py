"""The partitions of this broker, created, led, followed and removed according to the metadata image."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kafkapy._core.gate.data_gate import DataGate
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.topic_config import TopicConfig
from kafkapy.errors import Error
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from kafkapy.metadata.topics_image import NO_LEADER, PartitionImage, TopicImage
from kafkapy.metrics.topic_counters import TopicCounterTable
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.replica.partition import Partition
from kafkapy.replica.replica_context import ReplicaContext
from kafkapy.replica.replication_throttles import ReplicationThrottles
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import ZERO_UUID, TopicPartition, uuid_to_string

logger = logging.getLogger("kafka.server.ReplicaManager")
state_change_logger = logging.getLogger("state.change.logger")


class HostedPartitions:
    """Owns every Partition of this broker. Used only by the thread that owns it.

    Invariants: a partition is in `online` or in `offline`, never in both; a partition in `online` has the log and the
    topic id that the log manager has for it; the data gate (the compiled code that serves usual requests), if there is
    one, finds exactly the partitions in `online`. Logs are created before `apply` and deleted after `drop_topics`.

    `on_leadership(led, followed)` is called with the partitions that this broker began or ceased to lead, and with the
    partitions whose leader or leader epoch has changed.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log_manager: LogManager,
        context: ReplicaContext,
        on_leadership: Callable[[list[Partition], list[Partition]], None],
        gate: DataGate | None,
    ) -> None:
        self.online: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()
        self._config = config
        self._log_manager = log_manager
        self._context = context
        self._on_leadership = on_leadership
        self._gate = gate
        self.throttles = ReplicationThrottles(config)
        self._checkpointed: dict[TopicPartition, int] = {}
        self._isr_expiration: TimerEntry | None = None
        self.is_in_controlled_shutdown = False
        # The broker epoch before the restart, until this process has registered; None afterwards.
        self._former_epoch: int | None = None
        self.topic_counters = TopicCounterTable(config.kafkapy_metrics_series_limit)

    def find(self, topic_partition: TopicPartition) -> Partition | Error:
        """Returns the partition, or the error for requests to it: KAFKA_STORAGE_ERROR if it is offline,
        NOT_LEADER_OR_FOLLOWER if this broker does not host it, UNKNOWN_TOPIC_OR_PARTITION if it does not exist.
        """
        partition = self.online.get(topic_partition)
        if partition is not None:
            return partition
        if topic_partition in self.offline:
            return Error.KAFKA_STORAGE_ERROR
        if self._context.metadata.image.topics.partition(topic_partition[0], topic_partition[1]) is not None:
            return Error.NOT_LEADER_OR_FOLLOWER
        return Error.UNKNOWN_TOPIC_OR_PARTITION

    # -- metadata ------------------------------------------------------------------------------------------------

    def startup(
        self,
        image: MetadataImage,
        checkpointed_high_watermarks: dict[TopicPartition, int],
        *,
        waits_for_registration: bool,
    ) -> None:
        """Creates all partitions that `image` places on this broker, with their checkpointed high watermarks.

        If `waits_for_registration` is set, this broker leads no partition until an image has its new registration. An
        unclean stop may have removed records that the followers have. If this broker led in its former leader epoch and
        appended other records at the same offsets, the followers would not notice the difference.
        """
        self._context.follow_brokers(image.brokers)
        former = image.brokers.get(self._context.node_id)
        self.throttles.follow_broker_config()
        self._former_epoch = former.epoch if former is not None and waits_for_registration else None
        self._checkpointed = checkpointed_high_watermarks
        self._change(image.topics.by_name.values(), image)
        self._checkpointed = {}

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Applies one metadata delta. Deleted topics are removed first, because a new topic may have the name of a
        deleted one."""
        self._context.follow_brokers(image.brokers)
        self.drop_topics(delta.deleted_topics.values())
        if delta.changed_configs:
            self._change_configs(delta.changed_configs, image)
        if self._former_epoch is not None and self._has_registered(image):
            self._former_epoch = None
            self._change(image.topics.by_name.values(), image)
        elif delta.changed_topics:
            self._change(delta.changed_partitions, image)

    def _has_registered(self, image: MetadataImage) -> bool:
        registration = image.brokers.get(self._context.node_id)
        return registration is not None and registration.epoch != self._former_epoch

    def drop_topics(self, deleted: Iterable[TopicImage]) -> None:
        """Removes the partitions of deleted topics. Afterwards no request of this thread uses their logs.

        This includes the requests that compiled code (the gate) serves.
        """
        for topic in deleted:
            for index in topic.partitions:
                topic_partition = TopicPartition(topic.name, index)
                partition = self.online.get(topic_partition)
                if partition is not None and partition.topic_id == topic.topic_id:
                    partition.log.mark_deleted()
                self._drop(topic_partition, topic.topic_id)

    def _change(self, topics: Iterable[TopicImage], image: MetadataImage) -> None:
        led: list[Partition] = []
        followed: list[Partition] = []
        node_id = self._context.node_id
        monotonic_ms = self._context.clock.monotonic_ms()
        with self._context.delayed_operations.held_fetches_together():
            for topic in topics:
                for index, state in topic.partitions.items():
                    topic_partition = TopicPartition(topic.name, index)
                    if node_id not in state.replicas:
                        self._drop(topic_partition, topic.topic_id)
                        continue
                    partition = self._get_or_create(topic_partition, topic, image)
                    if partition is not None:
                        self._take_role(partition, state, monotonic_ms, led, followed)
        if led or followed:
            self._on_leadership(led, followed)
        self._watch_isr()

    def _take_role(
        self,
        partition: Partition,
        state: PartitionImage,
        monotonic_ms: int,
        led: list[Partition],
        followed: list[Partition],
    ) -> None:
        old_epoch = partition.leader_epoch
        if self._former_epoch is not None and state.leader == self._context.node_id:
            state = state._replace(leader=NO_LEADER)
        if state.leader == self._context.node_id:
            is_new = partition.make_leader(state, monotonic_ms)
            if is_new or partition.leader_epoch != old_epoch:
                led.append(partition)
            _log_role("Leader", partition, state)
        elif partition.make_follower(state) or self._is_given_up(state):
            followed.append(partition)
            _log_role("Follower", partition, state)

    def _is_given_up(self, state: PartitionImage) -> bool:
        """Returns True if this broker is in controlled shutdown, and the partition has no leader or this broker is no
        longer in its ISR."""
        return self.is_in_controlled_shutdown and (state.leader == NO_LEADER or self._context.node_id not in state.isr)

    def may_follow(self, partition: Partition) -> bool:
        """Returns False for a partition that this broker no longer hosts, or no longer fetches because of its
        controlled shutdown: the partition has no leader, or this broker is not in its ISR."""
        topic_partition = partition.topic_partition
        if self.online.get(topic_partition) is not partition:
            return False
        topics = self._context.metadata.image.topics
        state = topics.replica_of(self._context.node_id, partition.topic_id, topic_partition.partition)
        return state is None or not self._is_given_up(state)

    def _get_or_create(
        self, topic_partition: TopicPartition, topic: TopicImage, image: MetadataImage
    ) -> Partition | None:
        partition = self.online.get(topic_partition)
        if partition is not None and partition.topic_id == topic.topic_id:
            return partition
        if topic_partition in self.offline:
            return None
        log = self._log_manager.get_log(topic_partition)
        if log is None or not log.directory.is_online:
            state_change_logger.error("%s has no usable log: offline", topic_partition)
            self.offline.add(topic_partition)
            return None
        if log.topic_id not in (topic.topic_id, ZERO_UUID):
            state_change_logger.error(
                "Topic id in the log of %s is %s, in the metadata %s: offline",
                topic_partition,
                uuid_to_string(log.topic_id),
                uuid_to_string(topic.topic_id),
            )
            self.offline.add(topic_partition)
            return None
        checkpointed = self._checkpointed.get(topic_partition, 0)
        log.high_watermark = max(log.log_start_offset, min(checkpointed, log.log_end_offset))
        partition = Partition(topic_partition, topic.topic_id, log, self._context)
        partition.min_insync_replicas = self._min_insync_replicas(topic.name, image)
        self.throttles.apply_to(partition, image.config(TOPIC_RESOURCE, topic.name))
        partition.counters = self.topic_counters.enter(topic.name)
        assert log.high_watermark <= log.log_end_offset
        self.online[topic_partition] = partition
        if self._gate is not None:
            self._gate.add(partition, topic.name, topic.topic_id, topic_partition.partition)
        return partition

    def _drop(self, topic_partition: TopicPartition, topic_id: bytes) -> None:
        """Removes a partition and completes the requests that wait for it."""
        self.offline.discard(topic_partition)
        partition = self.online.get(topic_partition)
        if partition is None or partition.topic_id != topic_id:
            return
        self._take_out(partition)
        self._fail_waiting(partition)
        self._on_leadership([], [partition])

    def _take_out(self, partition: Partition) -> None:
        topic_partition = partition.topic_partition
        del self.online[topic_partition]
        self.topic_counters.leave(topic_partition.topic)
        partition.is_leader = partition.is_gated = False
        if self._gate is not None:
            self._gate.remove(partition, topic_partition.topic, partition.topic_id, topic_partition.partition)

    def _fail_waiting(self, partition: Partition) -> None:
        """Completes the requests that wait for a partition that is no longer in `online`."""
        self._context.delayed_operations.complete_all(partition, partition.topic_partition)
        if self._gate is not None:
            error = self.find(partition.topic_partition)
            self._gate.complete_awaited(partition, error if isinstance(error, Error) else Error.NOT_LEADER_OR_FOLLOWER)

    # -- configuration -------------------------------------------------------------------------------------------

    def _change_configs(self, changed: set[tuple[int, str]], image: MetadataImage) -> None:
        """Applies changed topic configurations. If the broker's configuration changed, updates all topics.

        `changed` has the resource type and the name of each changed resource.
        """
        if any(resource_type == BROKER_RESOURCE for resource_type, _ in changed):
            topics = {partition.topic for partition in self.online}
            self.throttles.follow_broker_config()
        else:
            topics = {name for resource_type, name in changed if resource_type == TOPIC_RESOURCE}
        for topic in topics:
            if topic in image.topics.by_name:
                overrides = image.config(TOPIC_RESOURCE, topic)
                self._log_manager.update_topic_config(topic, TopicConfig(self._config, overrides))
        for topic_partition, partition in self.online.items():
            if topic_partition.topic in topics:
                partition.min_insync_replicas = self._min_insync_replicas(topic_partition.topic, image)
                self.throttles.apply_to(partition, image.config(TOPIC_RESOURCE, topic_partition.topic))
                if partition.is_leader:
                    partition.maybe_increment_high_watermark(self._context.clock.monotonic_ms())

    def follow_broker_config(self, image: MetadataImage) -> None:
        """Updates the topics' settings after a change of the broker's configuration, from which topics inherit."""
        self._change_configs({(BROKER_RESOURCE, "")}, image)

    def _min_insync_replicas(self, topic: str, image: MetadataImage) -> int:
        text = image.config(TOPIC_RESOURCE, topic).get("min.insync.replicas")
        return int(self._config.min_insync_replicas if text is None else text)

    # -- failures and time ---------------------------------------------------------------------------------------

    def handle_directory_failure(self, directory: str) -> list[TopicPartition]:
        """Takes the partitions in `directory` offline (KAFKA_STORAGE_ERROR) and returns them."""
        lost = [partition for partition in self.online.values() if partition.log.directory.path == directory]
        for partition in lost:
            self._take_out(partition)
            self.offline.add(partition.topic_partition)
        for partition in lost:
            self._fail_waiting(partition)
        if lost:
            logger.error("%d partitions are offline: their log directory %s failed", len(lost), directory)
            self._on_leadership([], lost)
        return [partition.topic_partition for partition in lost]

    def _watch_isr(self) -> None:
        """Schedules the next search for followers that fell behind, after half of replica.lag.time.max.ms.

        Does nothing if no partition has followers, or if the search is scheduled already.
        """
        if self._isr_expiration is None and any(partition.remote_replicas for partition in self.online.values()):
            period_ms = self._context.replica_lag_max_ms // 2
            self._isr_expiration = self._context.schedule(period_ms, self._expire_isr)

    def _expire_isr(self) -> None:
        self._isr_expiration = None
        monotonic_ms = self._context.clock.monotonic_ms()
        for partition in tuple(self.online.values()):
            if partition.remote_replicas:
                partition.maybe_shrink_isr(monotonic_ms)
        self._watch_isr()

    def stop(self) -> None:
        if self._isr_expiration is not None:
            self._isr_expiration.cancel()
            self._isr_expiration = None


def _log_role(role: str, partition: Partition, state: PartitionImage) -> None:
    """Logs a change of a role, if the level of the state-change log is DEBUG: there may be thousands at once."""
    if state_change_logger.isEnabledFor(logging.DEBUG):
        state_change_logger.debug(
            "%s %s with topic id %s at leader epoch %d, partition epoch %d: leader %d, ISR %s",
            role,
            partition.topic_partition,
            uuid_to_string(partition.topic_id),
            state.leader_epoch,
            state.partition_epoch,
            state.leader,
            list(state.isr),
        )
