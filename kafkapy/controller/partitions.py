"""Brokers' reports about their partitions: a changed ISR (AlterPartition), the log directory of a replica."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkapy.controller.broker_registration import partition_change
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError, Error
from kafkapy.metadata import features as levels
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.topics_image import PartitionImage, TopicImage
from kafkapy.protocol.messages.metadata_records import PartitionChangeRecord


class AlterPartition(NamedTuple):
    """The ISR that a partition's leader requests; the epochs are the last ones that it has seen."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int


def alter_partition(
    image: MetadataImage, broker_id: int, request: AlterPartition
) -> ControllerResult[tuple[bytes, int]]:
    """Changes the ISR. The response names the partition (topic id, index).

    The partition's new state is in the image once the records are applied.

    Raises ApiError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH, NOT_CONTROLLER (this image is
    older), INVALID_UPDATE_VERSION, INVALID_REQUEST, INELIGIBLE_REPLICA.
    """
    topic, partition = _find(image, request.topic_id, request.partition)
    if request.leader_epoch > partition.leader_epoch or request.partition_epoch > partition.partition_epoch:
        raise ApiError(Error.NOT_CONTROLLER)
    if request.leader_epoch < partition.leader_epoch:
        raise ApiError(Error.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise ApiError(Error.INVALID_REQUEST)
    if request.partition_epoch < partition.partition_epoch:
        raise ApiError(Error.INVALID_UPDATE_VERSION)
    if not set(request.isr) <= set(partition.replicas) or partition.leader not in request.isr:
        raise ApiError(Error.INVALID_REQUEST)
    if request.leader_recovery_state == 1 and len(request.isr) > 1:
        raise ApiError(Error.INVALID_REQUEST)

    def is_live(replica: int) -> bool:
        broker = image.brokers.get(replica)
        return broker is not None and broker.is_active

    if any(not is_live(replica) for replica in request.isr if replica != broker_id):
        raise ApiError(Error.INELIGIBLE_REPLICA)
    change = partition_change(image, topic, request.partition, partition, is_live)
    change.target_isr = request.isr
    change.target_leader_recovery_state = request.leader_recovery_state
    record = change.build()
    return ControllerResult([] if record is None else [record], (request.topic_id, request.partition))


def assign_directories(
    image: MetadataImage, broker_id: int, assignments: Mapping[tuple[bytes, int], bytes]
) -> ControllerResult[None]:
    """Records the directories of a broker's replicas: (topic id, partition) -> directory id. Unknown partitions are
    skipped, because they may have been deleted since."""
    records: list[MessageAndVersion] = []
    if not levels.supports_directory_assignment(image.metadata_version):
        return ControllerResult(records, None)
    for (topic_id, partition_id), directory_id in assignments.items():
        topic = image.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(partition_id)
        if partition is None or broker_id not in partition.replicas:
            continue
        directories = list(partition.directories)
        position = partition.replicas.index(broker_id)
        if directories[position] == directory_id:
            continue
        directories[position] = directory_id
        record = PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id, directories=directories)
        records.append((record, levels.partition_record_version(image.metadata_version)))
    return ControllerResult(records, None)


def partitions_to_assign(
    image: MetadataImage, broker_id: int, found: Mapping[tuple[bytes, int], bytes]
) -> dict[tuple[bytes, int], bytes]:
    """Returns the directories in which a broker has found its partitions, if the metadata does not have these
    directories yet."""
    wrong = {}
    for (topic_id, partition_id), directory_id in found.items():
        topic = image.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(partition_id)
        if partition is None or broker_id not in partition.replicas:
            continue
        if partition.directory_of(broker_id) != directory_id:
            wrong[topic_id, partition_id] = directory_id
    return wrong


def _find(image: MetadataImage, topic_id: bytes, partition_id: int) -> tuple[TopicImage, PartitionImage]:
    topic = image.topics.by_id.get(topic_id)
    if topic is None:
        raise ApiError(Error.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return topic, partition
