"""AlterPartitionReassignments (KIP-455): which brokers hold a partition's replicas.

One node serves every replica, so that an assignment can only be the present one; Kafka's refusals are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.controller.result import SUCCESS, ControllerResult, ErrorMessage
from kafkapy.controller.topics import check_replicas
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.types import TopicPartition

# Partition -> the brokers that are to hold it; None: what is under way is to be cancelled.
Wanted = Sequence[tuple[TopicPartition, Sequence[int] | None]]


def alter_partition_reassignments(
    image: MetadataImage, wanted: Wanted
) -> ControllerResult[list[tuple[TopicPartition, ErrorMessage]]]:
    """An answer for each, in the order asked. Writes nothing."""
    return ControllerResult([], [(each, _alter(image, each, replicas)) for each, replicas in wanted])


def _alter(image: MetadataImage, topic_partition: TopicPartition, replicas: Sequence[int] | None) -> ErrorMessage:
    """As Kafka, a cancellation of nothing is refused without a message."""
    try:
        _check(image, topic_partition, replicas)
    except ApiError as error:
        nothing_to_cancel = error.error is Error.NO_REASSIGNMENT_IN_PROGRESS
        return ErrorMessage(error.error, None if nothing_to_cancel else error.message)
    return SUCCESS


def _check(image: MetadataImage, topic_partition: TopicPartition, replicas: Sequence[int] | None) -> None:
    name, partition_id = topic_partition
    topic = image.topics.by_name.get(name)
    if topic is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{partition_id}.")
    if replicas is None:
        raise ApiError(Error.NO_REASSIGNMENT_IN_PROGRESS)
    check_replicas(image, partition_id, replicas, None, even_if_fenced=True)
    if tuple(replicas) != partition.replicas:
        raise ApiError(
            Error.INVALID_REPLICA_ASSIGNMENT,
            f"The replicas of {topic_partition} cannot be moved from {list(partition.replicas)} to {list(replicas)}: "
            "this node alone holds replicas.",
        )
