"""Brokers' reports about their partitions: a changed ISR (AlterPartition), or the log directory of a replica."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkapy.controller.broker_registration import check_broker_epoch
from kafkapy.controller.partition_changes import PartitionChanges
from kafkapy.controller.result import ControllerResult
from kafkapy.controller.settings import DEFAULT_SETTINGS, ControllerSettings
from kafkapy.errors import ApiError, Error
from kafkapy.metadata import features as levels
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.topics_delta import merge_partition_change
from kafkapy.metadata.topics_image import NO_LEADER, NO_LEADER_CHANGE, RECOVERED, RECOVERING, PartitionImage, TopicImage
from kafkapy.named_tuple import NamedTuple

ANY_EPOCH = -1


class AlterPartition(NamedTuple):
    """The ISR that a partition's leader requests in an AlterPartition request.

    `leader_epoch` and `partition_epoch` are the last ones that the leader has seen. `isr_epochs` are the broker epochs
    of the ISR's members (KIP-903), -1 where unknown; it is empty before version 3 of the request.
    """

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int
    isr_epochs: tuple[int, ...] = ()


class AlteredPartition(NamedTuple):
    """The outcome of an AlterPartition: an error, or the partition's state after the change."""

    topic_id: bytes
    partition: int
    error: Error
    leader: int = NO_LEADER
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED
    partition_epoch: int = 0


def alter_partitions(
    image: MetadataImage,
    broker_id: int,
    broker_epoch: int,
    requests: Sequence[AlterPartition],
    settings: ControllerSettings = DEFAULT_SETTINGS,
) -> ControllerResult[list[AlteredPartition]]:
    """Changes the ISRs of partitions that a broker leads. The response has a result for each of `requests`.

    Each change succeeds or fails independently of the others. Raises ApiError(STALE_BROKER_EPOCH) if `broker_epoch` is
    not the epoch of the broker's registration.
    """
    check_broker_epoch(image, broker_id, broker_epoch)
    changes = PartitionChanges(image, settings)
    records: list[MessageAndVersion] = []
    response = []
    for request in requests:
        try:
            record, altered = _alter(image, changes, broker_id, request)
        except ApiError as error:
            response.append(AlteredPartition(request.topic_id, request.partition, error.error))
            continue
        records += record
        response.append(altered)
    return ControllerResult(records, response)


def alter_partition(
    image: MetadataImage, broker_id: int, request: AlterPartition, settings: ControllerSettings = DEFAULT_SETTINGS
) -> ControllerResult[AlteredPartition]:
    """Changes the ISR of one partition for the broker in this process, `broker_id`, which leads the partition.

    The broker epoch is not checked. Raises ApiError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH,
    NOT_CONTROLLER (the image is older than the broker's state), INVALID_UPDATE_VERSION, INVALID_REQUEST,
    INELIGIBLE_REPLICA.
    """
    records, altered = _alter(image, PartitionChanges(image, settings), broker_id, request)
    return ControllerResult(records, altered)


def _alter(
    image: MetadataImage, changes: PartitionChanges, broker_id: int, request: AlterPartition
) -> tuple[list[MessageAndVersion], AlteredPartition]:
    """Returns the records and the outcome of one request.

    A change that completes a reassignment may elect another leader. Then the change takes effect, and the outcome for
    the former leader, which sent the request, is the error NEW_LEADER_ELECTED.
    """
    topic, partition = _find(image, request.topic_id, request.partition)
    _check_request(partition, broker_id, request)
    epochs = request.isr_epochs or (ANY_EPOCH,) * len(request.isr)
    for replica, epoch in zip(request.isr, epochs, strict=True):
        broker = image.brokers.get(replica)
        if broker is None or not broker.is_active or epoch not in (ANY_EPOCH, broker.epoch):
            raise ApiError(Error.INELIGIBLE_REPLICA)
    change = changes.change(topic, request.partition, partition, by_config=True)
    change.target_isr = request.isr
    change.target_leader_recovery_state = request.leader_recovery_state
    record = change.build()
    if record is not None:
        partition = merge_partition_change(partition, record[0])
        if record[0].leader not in (broker_id, NO_LEADER_CHANGE):
            moved = AlteredPartition(request.topic_id, request.partition, Error.NEW_LEADER_ELECTED)
            return [record], moved
    altered = AlteredPartition(
        request.topic_id,
        request.partition,
        Error.NONE,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.leader_recovery_state,
        partition.partition_epoch,
    )
    return [] if record is None else [record], altered


def _check_request(partition: PartitionImage, broker_id: int, request: AlterPartition) -> None:
    if request.leader_epoch > partition.leader_epoch or request.partition_epoch > partition.partition_epoch:
        raise ApiError(Error.NOT_CONTROLLER)
    if request.leader_epoch < partition.leader_epoch:
        raise ApiError(Error.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise ApiError(Error.INVALID_REQUEST)
    if request.partition_epoch < partition.partition_epoch:
        raise ApiError(Error.INVALID_UPDATE_VERSION)
    isr = set(request.isr)
    if not isr <= set(partition.replicas) or len(isr) != len(request.isr) or partition.leader not in isr:
        raise ApiError(Error.INVALID_REQUEST)
    is_recovering = request.leader_recovery_state == RECOVERING
    if is_recovering and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        raise ApiError(Error.INVALID_REQUEST)


class DirectoryAssignment(NamedTuple):
    """The log directory in which a broker has its replica of a partition."""

    topic_id: bytes
    partition: int
    directory_id: bytes


def assign_replicas_to_directories(
    image: MetadataImage,
    broker_id: int,
    broker_epoch: int,
    assignments: Sequence[DirectoryAssignment],
    settings: ControllerSettings = DEFAULT_SETTINGS,
) -> ControllerResult[list[Error]]:
    """Records the directories of a broker's replicas (KIP-858); a replica in an offline directory leaves the ISR.

    The response has an error code for each assignment, in the order of the assignments: NONE, UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (the broker has no replica). Raises ApiError: UNSUPPORTED_VERSION
    before metadata.version 17, STALE_BROKER_EPOCH.
    """
    if not levels.supports_directory_assignment(image.metadata_version):
        raise ApiError(Error.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = check_broker_epoch(image, broker_id, broker_epoch)
    return _assign(image, broker, assignments, settings)


def assign_directories(
    image: MetadataImage,
    broker_id: int,
    assignments: Mapping[tuple[bytes, int], bytes],
    settings: ControllerSettings = DEFAULT_SETTINGS,
) -> ControllerResult[None]:
    """Records the log directories of replicas: `assignments` maps (topic id, partition) to a directory id.

    `broker_id` is the id of the broker in this process, so that no broker epoch is checked. Unknown partitions are
    ignored, because they may have been deleted since the broker reported them.
    """
    broker = image.brokers.get(broker_id)
    if broker is None or not levels.supports_directory_assignment(image.metadata_version):
        return ControllerResult([], None)
    wanted = [DirectoryAssignment(*partition, directory_id) for partition, directory_id in assignments.items()]
    return ControllerResult(_assign(image, broker, wanted, settings).records, None)


def _assign(
    image: MetadataImage,
    broker: BrokerRegistration,
    assignments: Iterable[DirectoryAssignment],
    settings: ControllerSettings,
) -> ControllerResult[list[Error]]:
    changes = PartitionChanges(image, settings)
    records: list[MessageAndVersion] = []
    offline: dict[tuple[bytes, int], tuple[TopicImage, int, PartitionImage]] = {}
    errors = []
    for topic_id, partition_id, directory_id in assignments:
        try:
            topic, partition = _find(image, topic_id, partition_id)
        except ApiError as error:
            errors.append(error.error)
            continue
        if broker.broker_id not in partition.replicas:
            errors.append(Error.NOT_LEADER_OR_FOLLOWER)
            continue
        errors.append(Error.NONE)
        change = changes.change(topic, partition_id, partition)
        change.target_directories[broker.broker_id] = directory_id
        record = change.build()
        if record is not None:
            records.append(record)
        if not broker.has_online_directory(directory_id):
            offline[topic_id, partition_id] = (topic, partition_id, partition)
    leaving = PartitionChanges(image, settings, removed=broker.broker_id)
    records.extend(leaving.leader_and_isr_updates(offline.values()))
    return ControllerResult(records, errors)


def partitions_to_assign(
    image: MetadataImage, broker_id: int, found: Mapping[tuple[bytes, int], bytes]
) -> dict[tuple[bytes, int], bytes]:
    """Returns the elements of `found` whose directory is not the one in the metadata.

    `found` maps (topic id, partition) to the id of the directory in which the broker has found its replica. Partitions
    that do not exist, or of which the broker is not a replica, are omitted.
    """
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
