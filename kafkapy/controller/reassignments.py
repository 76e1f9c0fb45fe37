"""AlterPartitionReassignments (KIP-455): changes the brokers that have a partition's replicas.

One node has every replica, so that only the current assignment is valid. Other assignments are refused as by Apache
Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.controller.result import SUCCESS, ControllerResult, ErrorMessage
from kafkapy.controller.topics import check_replicas
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.types import TopicPartition

# Partition -> its new replicas; None cancels a reassignment in progress.
Wanted = Sequence[tuple[TopicPartition, Sequence[int] | None]]


def alter_partition_reassignments(
    image: MetadataImage, wanted: Wanted
) -> ControllerResult[list[tuple[TopicPartition, ErrorMessage]]]:
    """Returns a response for each reassignment, in their order. Writes no records."""
    return ControllerResult([], [(each, _alter(image, each, replicas)) for each, replicas in wanted])


def _alter(image: MetadataImage, topic_partition: TopicPartition, replicas: Sequence[int] | None) -> ErrorMessage:
    """Returns the error of one reassignment. As in Apache Kafka, a cancellation of nothing has no message."""
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
