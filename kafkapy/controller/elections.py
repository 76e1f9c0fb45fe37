"""ElectLeaders (KIP-460): moves leadership to the preferred replica, or to any live replica at the cost of records."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.controller.broker_registration import partition_change
from kafkapy.controller.partition_change import Election
from kafkapy.controller.result import SUCCESS, ControllerResult, ErrorMessage
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.types import TopicPartition

ELECTION_TYPES = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(
    image: MetadataImage, election_type: int, partitions: Sequence[TopicPartition] | None
) -> ControllerResult[dict[TopicPartition, ErrorMessage]]:
    """Elects leaders of the named partitions. None means all; then the response leaves out partitions without a change.

    Raises ApiError(INVALID_REQUEST) for an unknown election type.
    """
    election = ELECTION_TYPES.get(election_type)
    if election is None:
        raise ApiError(Error.INVALID_REQUEST, f"Unknown election type {election_type}")
    wanted = _all_partitions(image) if partitions is None else partitions
    records: list[MessageAndVersion] = []
    response: dict[TopicPartition, ErrorMessage] = {}
    for topic_partition in dict.fromkeys(wanted):
        try:
            records.append(_elect(image, election, topic_partition))
            response[topic_partition] = SUCCESS
        except ApiError as error:
            if partitions is not None or error.error is not Error.ELECTION_NOT_NEEDED:
                response[topic_partition] = ErrorMessage(error.error, error.message)
    return ControllerResult(records, response)


def _all_partitions(image: MetadataImage) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition_id)
        for topic in image.topics.by_name.values()
        for partition_id in topic.partitions
    ]


def _elect(image: MetadataImage, election: Election, topic_partition: TopicPartition) -> MessageAndVersion:
    topic = image.topics.by_name.get(topic_partition.topic)
    if topic is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_partition.topic}")
    partition = topic.partitions.get(topic_partition.partition)
    if partition is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic_partition}")
    is_preferred = election is Election.PREFERRED
    if partition.leader == partition.preferred_replica if is_preferred else partition.leader != NO_LEADER:
        raise ApiError(Error.ELECTION_NOT_NEEDED)

    def is_live(replica: int) -> bool:
        broker = image.brokers.get(replica)
        return broker is not None and broker.is_active

    change = partition_change(image, topic, topic_partition.partition, partition, is_live)
    change.election = election
    record = change.build()
    if record is None or (is_preferred and record[0].leader != partition.preferred_replica):
        raise ApiError(Error.PREFERRED_LEADER_NOT_AVAILABLE if is_preferred else Error.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return record
