"""Changes of partitions when a broker leaves, returns or fails: their leaders, ISRs and eligible leader replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kafkapy.controller.partition_change import Election, PartitionChange
from kafkapy.controller.settings import DEFAULT_SETTINGS, ControllerSettings, effective_min_isr, may_elect_uncleanly
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.topics_image import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
    PartitionImage,
    TopicImage,
)
from kafkapy.named_tuple import NamedTuple

NO_BROKER = -1


class TopicRules(NamedTuple):
    """The configuration of a topic that determines decisions about its partitions.

    `min_isr` is its effective min.insync.replicas, and `may_elect_uncleanly` its unclean.leader.election.enable.
    """

    min_isr: int
    may_elect_uncleanly: bool


class PartitionChanges:
    """Makes changes of partitions, according to the broker registrations and the configuration in a metadata image.

    Not thread-safe. A replica is acceptable as leader if its broker is active and its log directory online.

    When a broker changes its state, the same batch of records also changes its partitions. The image still has the old
    state of the broker. Parameters therefore name the brokers that change: `added` is acceptable although the image
    shows it as fenced; `removed` and `unclean` are not acceptable and leave the ISR; `unclean` also leaves the eligible
    leader replicas.
    """

    __slots__ = ("_added", "_image", "_leaving", "_settings", "_topic_rules", "_unclean")

    def __init__(
        self,
        image: MetadataImage,
        settings: ControllerSettings = DEFAULT_SETTINGS,
        *,
        added: int = NO_BROKER,
        removed: int = NO_BROKER,
        unclean: int = NO_BROKER,
    ) -> None:
        self._image = image
        self._settings = settings
        self._added = added
        self._leaving = (removed, unclean)
        self._unclean = unclean
        self._topic_rules: dict[str, TopicRules] = {}

    def change(
        self, topic: TopicImage, partition_id: int, partition: PartitionImage, *, by_config: bool = False
    ) -> PartitionChange:
        """Returns a PartitionChange of one partition.

        The kind of its election is Election.UNCLEAN if `by_config` is True and the topic's
        unclean.leader.election.enable is true. Otherwise it is Election.ONLINE, which the caller may replace.
        """
        rules = self._rules(topic.name)
        change = PartitionChange(
            topic.topic_id,
            partition_id,
            partition,
            self._image.metadata_version,
            self._acceptance(partition),
            elr_enabled=self._image.elr_enabled,
            min_isr=rules.min_isr,
            default_directory=lambda broker_id: default_directory(self._image, broker_id),
        )
        if by_config and rules.may_elect_uncleanly:
            change.election = Election.UNCLEAN
        return change

    def leader_and_isr_updates(
        self, partitions: Iterable[tuple[TopicImage, int, PartitionImage]]
    ) -> Iterator[MessageAndVersion]:
        """Yields the records that remove brokers from the partitions' ISRs and elect leaders.

        The constructor has received the brokers to remove as `removed` and `unclean`. If there are none, only leaders
        are elected. A partition that does not change has no record.
        """
        for topic, partition_id, partition in partitions:
            change = self.change(topic, partition_id, partition, by_config=True)
            change.target_isr = tuple(replica for replica in partition.isr if replica not in self._leaving)
            if self._unclean != NO_BROKER:
                change.unclean_shutdown_replicas = frozenset([self._unclean])
            record = change.build()
            if record is not None:
                yield record

    def _acceptance(self, partition: PartitionImage) -> Callable[[int], bool]:
        def is_acceptable(replica: int) -> bool:
            broker = self._image.brokers.get(replica)
            if broker is None or replica in self._leaving or replica not in partition.replicas:
                return False
            is_active = replica == self._added or broker.is_active
            return is_active and broker.has_online_directory(partition.directory_of(replica))

        return is_acceptable

    def _rules(self, topic: str) -> TopicRules:
        rules = self._topic_rules.get(topic)
        if rules is None:
            rules = self._topic_rules[topic] = TopicRules(
                effective_min_isr(self._image, topic, self._settings),
                may_elect_uncleanly(self._image, topic, self._settings),
            )
        return rules


def default_directory(image: MetadataImage, broker_id: int) -> bytes:
    """Returns the directory id for a new replica: the id of the broker's log directory if the broker has only one.

    Returns DIRECTORY_UNASSIGNED if the broker has several log directories, so that the broker chooses one of them, or
    if it is not registered. Returns DIRECTORY_MIGRATING if the broker has reported no log directory.
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.log_dirs:
        return DIRECTORY_MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else DIRECTORY_UNASSIGNED


def partitions_where(
    image: MetadataImage, predicate: Callable[[PartitionImage], bool]
) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    for topic in image.topics.by_name.values():
        for partition_id, partition in topic.partitions.items():
            if predicate(partition):
                yield topic, partition_id, partition


def partitions_in_isr(image: MetadataImage, broker_id: int) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    """Yields the partitions whose ISR contains this broker, which include all partitions that it leads."""
    return partitions_where(image, lambda partition: broker_id in partition.isr)


def partitions_in_elr(image: MetadataImage, broker_id: int) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    return partitions_where(image, lambda partition: broker_id in partition.elr)


def partitions_without_leader(image: MetadataImage) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    return partitions_where(image, lambda partition: partition.leader == NO_LEADER)


def has_leaderships(image: MetadataImage, broker_id: int) -> bool:
    return any(True for _ in partitions_where(image, lambda partition: partition.leader == broker_id))
