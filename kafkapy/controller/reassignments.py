"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455): which brokers have the replicas of a partition.

A reassignment begins with a record that adds the new replicas to the old ones. It completes, as part of any later
change of the partition, when the new replicas are in sync (`partition_change`).
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.controller.partition_changes import PartitionChanges
from kafkapy.controller.result import SUCCESS, ControllerResult, ErrorMessage, check_record_count
from kafkapy.controller.settings import DEFAULT_SETTINGS, ControllerSettings, may_elect_uncleanly
from kafkapy.controller.topics import check_replicas
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.topics_image import PartitionImage, TopicImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import NoOpRecord
from kafkapy.types import TopicPartition

# Partition -> its new replicas; None cancels a reassignment in progress.
Wanted = Sequence[tuple[TopicPartition, Sequence[int] | None]]


class Assignment(NamedTuple):
    """The replicas of a partition during a reassignment; `replicas` includes those in `adding` and in `removing`."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def alter_partition_reassignments(
    image: MetadataImage,
    wanted: Wanted,
    settings: ControllerSettings = DEFAULT_SETTINGS,
    *,
    allow_replication_factor_change: bool = True,
) -> ControllerResult[list[tuple[TopicPartition, ErrorMessage]]]:
    """Begins, replaces or cancels reassignments. The response has a result for each element of `wanted`, in the same
    order.

    An element of `wanted` is a pair of a partition and its target replicas. If the replicas are None, the reassignment
    of the partition is cancelled. If `allow_replication_factor_change` is False, a change of the number of replicas is
    refused. Raises ApiError(POLICY_VIOLATION) if more records are needed than one batch can have.
    """
    changes = PartitionChanges(image, settings)
    records: list[MessageAndVersion] = []
    response = []
    for topic_partition, replicas in wanted:
        try:
            topic, partition = _find(image, topic_partition)
            if replicas is None:
                record = _cancel(image, changes, topic, topic_partition.partition, partition, settings)
            else:
                if not allow_replication_factor_change:
                    _check_replication_factor(image, topic_partition.partition, partition, replicas)
                record = _reassign(image, changes, topic, topic_partition.partition, partition, replicas)
        except ApiError as error:
            # As in Apache Kafka, a cancellation of nothing has no message of its own.
            nothing_to_cancel = error.error is Error.NO_REASSIGNMENT_IN_PROGRESS
            response.append((topic_partition, ErrorMessage(error.error, None if nothing_to_cancel else error.message)))
            continue
        if record is not None:
            records.append(record)
        response.append((topic_partition, SUCCESS))
    check_record_count(records)
    return ControllerResult(records, response)


def list_partition_reassignments(
    image: MetadataImage, named: Sequence[tuple[str, Sequence[int]]] | None
) -> ControllerResult[list[tuple[TopicPartition, PartitionImage]]]:
    """Returns the partitions with a reassignment in progress: of the `named` topics and partition ids, or of all topics
    if `named` is None. Partitions that do not exist are left out.

    The result has a NoOpRecord. Only the active controller can commit this record. A former controller that has not yet
    noticed the loss of its leadership therefore does not report reassignments that its successor has cancelled.
    """
    by_name = image.topics.by_name
    if named is None:
        named = [(topic.name, list(topic.partitions)) for topic in by_name.values()]
    found = []
    for name, partition_ids in named:
        partitions = by_name[name].partitions if name in by_name else {}
        for partition_id in partition_ids:
            partition = partitions.get(partition_id)
            if partition is not None and is_reassigning(partition):
                found.append((TopicPartition(name, partition_id), partition))
    return ControllerResult([(NoOpRecord(), 0)], found)


def is_reassigning(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def reassigned(partition: PartitionImage, target: Sequence[int]) -> Assignment:
    """Returns the assignment of a partition while the partition is reassigned to the `target` replicas.

    Its replicas are the target replicas, followed by the replicas that will be removed. A new request replaces a
    reassignment in progress: a replica that was being added is still being added if it is in `target`, and will be
    removed otherwise. Repeating a request therefore changes nothing.

    Apache Kafka 4.3 behaves differently in one case. If the new request adds no replica, it leaves the list of adding
    replicas unchanged, so that a reassignment back to the original replicas never completes.
    """
    original = set(partition.replicas).difference(partition.adding_replicas)
    removing = tuple(sorted(set(partition.replicas).difference(target)))
    return Assignment((*target, *removing), tuple(sorted(set(target) - original)), removing)


def _find(image: MetadataImage, topic_partition: TopicPartition) -> tuple[TopicImage, PartitionImage]:
    name, partition_id = topic_partition
    topic = image.topics.by_name.get(name)
    if topic is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{partition_id}.")
    return topic, partition


def _reassign(
    image: MetadataImage,
    changes: PartitionChanges,
    topic: TopicImage,
    partition_id: int,
    partition: PartitionImage,
    replicas: Sequence[int],
) -> MessageAndVersion | None:
    """Returns the record that begins a reassignment to the brokers in `replicas`, or None if nothing changes.

    If the ISR already contains all of `replicas`, the record completes the reassignment at once.
    """
    check_replicas(image, partition_id, replicas, None, even_if_fenced=True)
    assignment = reassigned(partition, replicas)
    change = changes.change(topic, partition_id, partition)
    change.target_replicas = assignment.replicas
    change.target_adding = assignment.adding
    change.target_removing = assignment.removing
    return change.build()


def _check_replication_factor(
    image: MetadataImage, partition_id: int, partition: PartitionImage, replicas: Sequence[int]
) -> None:
    """Raises ApiError(INVALID_REPLICATION_FACTOR) if the number of replicas would change (KIP-860)."""
    check_replicas(image, partition_id, replicas, None, even_if_fenced=True)
    current = len({*partition.replicas, *partition.adding_replicas} - set(partition.removing_replicas))
    if current != len(replicas):
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {current} to {len(replicas)}",
        )


def _cancel(
    image: MetadataImage,
    changes: PartitionChanges,
    topic: TopicImage,
    partition_id: int,
    partition: PartitionImage,
    settings: ControllerSettings,
) -> MessageAndVersion | None:
    """Returns the record that cancels a reassignment and restores the former replicas.

    If only adding replicas are in the ISR, the first of the former replicas becomes the ISR, and records may be lost.
    Raises ApiError(INVALID_REPLICA_ASSIGNMENT) in this case if the topic's unclean.leader.election.enable is not true,
    or if there are no former replicas; and NO_REASSIGNMENT_IN_PROGRESS if the partition is not being reassigned. The
    result is never None, because the end of a reassignment is a change.
    """
    if not is_reassigning(partition):
        raise ApiError(Error.NO_REASSIGNMENT_IN_PROGRESS)
    original = tuple(each for each in partition.replicas if each not in partition.adding_replicas)
    isr = tuple(each for each in partition.isr if each not in partition.adding_replicas)
    if not isr:
        if not original:
            raise ApiError(
                Error.INVALID_REPLICA_ASSIGNMENT,
                "Invalid replica assignment: addingReplicas contains all replicas.",
            )
        if not may_elect_uncleanly(image, topic.name, settings):
            raise ApiError(
                Error.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{partition_id} because it would require an "
                "unclean leader election.",
            )
        isr = original[:1]
    change = changes.change(topic, partition_id, partition, by_config=True)
    change.target_isr = isr
    change.target_replicas = original
    change.target_adding = change.target_removing = ()
    return change.build()
