"""Applies each committed change of the metadata to logs, configuration and replicas.

The quorum thread, which runs Raft and the controller, calls the publisher after the commit. The publisher posts the
work on replicas to the reactor's thread. If log directories have to be created or deleted first, the thread for log
directories does that, because the quorum thread must not wait for the disk: it would miss the messages of the quorum.
All later changes then pass through that thread too, so that the changes are applied in log order. The controller
responds to the request that made a change when the change was posted to the reactor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.topic_config import TopicConfig
from kafkapy.controller.partitions import partitions_to_assign
from kafkapy.errors import StorageError
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import TOPIC_RESOURCE, MetadataImage
from kafkapy.metadata.topics_image import TopicImage
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.server.dynamic_config_listener import DynamicConfigListener
from kafkapy.server.serial_thread import SerialThread
from kafkapy.storage.log_creation import NewLog
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import TopicPartition

# (topic id, partition) -> directory id
Directories = dict[tuple[bytes, int], bytes]

logger = logging.getLogger("kafka.server.metadata.BrokerMetadataPublisher")


class MetadataPublisher:
    """The listener of metadata changes: the controller loop (`ControllerLoop`) notifies it of each committed change.

    The broker registers it through a HeldListener, which holds the changes back until the broker has loaded its logs.

    `on_metadata` is called on the quorum thread; `take_over` and `finish` by the thread that starts and stops the
    broker.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log_manager: LogManager,
        replica_manager: ReplicaManager,
        node_id: int,
        post: Callable[[Callable[[], None]], None],
        run_on_owner: Callable[[Callable[[], object]], object],
        *,
        disk_thread: SerialThread | None = None,
        on_topics_deleted: Callable[[list[TopicImage]], None] = lambda topics: None,
        report_directories: Callable[[Directories], object] = lambda found: None,
        on_broker_config: Callable[[], object] = lambda: None,
        on_features: Callable[[], object] = lambda: None,
    ) -> None:
        """Creates a publisher for the replicas of the node `node_id`.

        `post(work)` runs work on the reactor's thread later; `run_on_owner(work)` runs work on that thread and waits.
        `disk_thread` is the thread for log directories; without it, the caller of `on_metadata` creates and deletes
        logs. `on_topics_deleted` is called with the deleted topics, on the reactor's thread, after their replicas were
        removed. `report_directories` is called, on any thread, with {(topic id, partition): directory id} of new logs,
        if the metadata assigns no directory to them. `on_broker_config` is called, on the thread that applies the
        change, when a request has set keys of brokers, even to the same values.
        `on_features` is called on the reactor's thread when the level of a feature was set.
        """
        self._config = config
        self._log_manager = log_manager
        self._replica_manager = replica_manager
        self._node_id = node_id
        self._post = post
        self._run_on_owner = run_on_owner
        self._disk_thread = disk_thread
        self._report_directories = report_directories
        self._dynamic_config = DynamicConfigListener(config, node_id, on_broker_config)
        self._on_topics_deleted = on_topics_deleted
        self._on_features = on_features
        self._offline: set[TopicPartition] = set()

    def take_over(self, image: MetadataImage) -> None:
        """Applies the first image, before other threads run: sets the dynamic configuration and creates missing
        logs."""
        self._dynamic_config.apply(image)
        self._create_logs(image.topics.by_name.values(), image, image)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> Future[None] | None:
        """Applies a change of the metadata, on the calling thread or on the thread for log directories.

        The thread for log directories, if this publisher has one, applies the change if logs have to be created or
        deleted, or if the thread has not applied an earlier change yet. The returned Future is then completed when the
        change is applied. Otherwise the change is applied on return, and the result is None.
        """
        disk = self._disk_thread
        if disk is None or (disk.is_idle and not self._needs_disk(delta)):
            self._publish(delta, image)
            return None
        return disk.submit(lambda: self._publish(delta, image))

    def finish(self) -> None:
        """Waits until all changes so far have been applied, and ends the thread for log directories. Called when
        the quorum thread has ended."""
        if self._disk_thread is not None:
            self._disk_thread.stop()

    def _needs_disk(self, delta: MetadataDelta) -> bool:
        """Returns whether logs have to be created or deleted."""
        return bool(delta.deleted_topics) or any(
            (self._node_id in partition.replicas)
            != (self._log_manager.get_log(TopicPartition(topic.name, number)) is not None)
            for topic in delta.changed_partitions
            for number, partition in topic.partitions.items()
        )

    def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        changed = delta.changed_partitions
        self._delete_replicas([*delta.deleted_topics.values(), *self._no_longer_hosted(changed)])
        self._dynamic_config.on_metadata(delta, image)
        created = self._create_logs(changed, image, delta.image)
        unassigned = partitions_to_assign(image, self._node_id, created)
        if unassigned:
            self._report_directories(unassigned)
        deleted = list(delta.deleted_topics.values())
        self._post(lambda: self._apply(delta, image, deleted))

    def _apply(self, delta: MetadataDelta, image: MetadataImage, deleted: list[TopicImage]) -> None:
        self._replica_manager.apply(delta, image)
        if deleted:
            self._on_topics_deleted(deleted)
        if delta.changed_features:
            self._on_features()

    def topic_config(self, image: MetadataImage, topic: str) -> TopicConfig:
        return TopicConfig(self._config, image.config(TOPIC_RESOURCE, topic))

    def _create_logs(self, topics: Iterable[TopicImage], image: MetadataImage, before: MetadataImage) -> Directories:
        """Creates the logs of this node's replicas that do not exist, and returns the directory of each.

        A missing log whose partition exists in the image `before` is not created while a log directory is offline,
        because that directory may contain the log.
        """
        wanted: list[NewLog] = []
        for topic in topics:
            config: TopicConfig | None = None
            old = before.topics.by_id.get(topic.topic_id)
            for number, partition in topic.partitions.items():
                topic_partition = TopicPartition(topic.name, number)
                if self._node_id not in partition.replicas or self._log_manager.get_log(topic_partition) is not None:
                    continue
                config = config or self.topic_config(image, topic.name)
                directory_id = partition.directory_of(self._node_id)
                is_new = old is None or number not in old.partitions
                wanted.append(NewLog(topic_partition, topic.topic_id, config, directory_id, is_new))
        created: Directories = {}
        for new, found in zip(wanted, self._log_manager.create_logs(wanted), strict=True):
            if isinstance(found, StorageError):
                self._report_offline(new.topic_partition, found)
            else:
                created[new.topic_id, new.topic_partition.partition] = found.directory.directory_id
        return created

    def _report_offline(self, topic_partition: TopicPartition, error: StorageError) -> None:
        """Logs that a partition is offline, once only, although every later change of it fails with the same
        error."""
        if topic_partition not in self._offline:
            self._offline.add(topic_partition)
            logger.error("%s is offline: %s", topic_partition, error)

    def _no_longer_hosted(self, topics: Iterable[TopicImage]) -> list[TopicImage]:
        """Returns, grouped by topic, the partitions of `topics` that have a log on this node but no longer a
        replica."""
        found = []
        for topic in topics:
            partitions = {
                number: partition
                for number, partition in topic.partitions.items()
                if self._node_id not in partition.replicas
                and self._log_manager.get_log(TopicPartition(topic.name, number)) is not None
            }
            if partitions:
                found.append(TopicImage(topic.name, topic.topic_id, partitions))
        return found

    def _delete_replicas(self, topics: list[TopicImage]) -> None:
        """Removes the replicas of the partitions in `topics`, then deletes their logs.

        The replicas are removed first, because the reactor appends to the logs of replicas.
        """
        if topics:
            self._run_on_owner(lambda: self._replica_manager.drop_topics(topics))
        for topic in topics:
            self._delete_logs(topic)

    def _delete_logs(self, topic: TopicImage) -> None:
        for number in topic.partitions:
            topic_partition = TopicPartition(topic.name, number)
            self._offline.discard(topic_partition)
            log = self._log_manager.get_log(topic_partition)
            if log is not None and log.topic_id != topic.topic_id:
                continue
            try:
                self._log_manager.delete_log(topic_partition)
            except StorageError as error:
                logger.error("%s could not be deleted: %s", topic_partition, error)
