"""Elections of leaders: by ElectLeaders (KIP-460), and by the controller's periodic tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from kafkapy.controller.partition_change import Election, PartitionChange
from kafkapy.controller.partition_changes import PartitionChanges, partitions_where, partitions_without_leader
from kafkapy.controller.result import SUCCESS, ControllerResult, ErrorMessage, check_record_count
from kafkapy.controller.settings import DEFAULT_SETTINGS, ControllerSettings, may_elect_uncleanly
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.types import TopicPartition, by_topic

ELECTION_TYPES = {0: Election.PREFERRED, 1: Election.UNCLEAN}
MAX_ELECTIONS_PER_TASK = 1000
# Topic -> partition -> its result.
ElectionResults = dict[str, dict[int, ErrorMessage]]


def elect_leaders(
    image: MetadataImage,
    election_type: int,
    partitions: Sequence[TopicPartition] | None,
    settings: ControllerSettings = DEFAULT_SETTINGS,
) -> ControllerResult[ElectionResults]:
    """Elects leaders of the named partitions, or of all partitions if `partitions` is None.

    `election_type` is 0 for the preferred replica, 1 for an unclean election. If `partitions` is None, the response
    contains every topic, with only the partitions that need an election, as in Kafka. Raises ApiError: INVALID_REQUEST
    for an unknown election type, POLICY_VIOLATION if more records are needed than one batch can have.
    """
    election = ELECTION_TYPES.get(election_type)
    if election is None:
        raise ApiError(Error.INVALID_REQUEST, f"Unknown election type {election_type}")
    wanted: Mapping[str, Iterable[int]]
    if partitions is None:
        wanted = {name: topic.partitions for name, topic in image.topics.by_name.items()}
    else:
        wanted = by_topic(dict.fromkeys(partitions))
    changes = PartitionChanges(image, settings)
    records: list[MessageAndVersion] = []
    response: ElectionResults = {}
    for topic, partition_ids in wanted.items():
        results = response[topic] = {}
        for partition_id in partition_ids:
            try:
                records.append(_elect(image, changes, election, TopicPartition(topic, partition_id)))
                results[partition_id] = SUCCESS
            except ApiError as error:
                if partitions is not None or error.error is not Error.ELECTION_NOT_NEEDED:
                    results[partition_id] = ErrorMessage(error.error, error.message)
    check_record_count(records)
    return ControllerResult(records, response)


def _elect(
    image: MetadataImage, changes: PartitionChanges, election: Election, topic_partition: TopicPartition
) -> MessageAndVersion:
    topic = image.topics.by_name.get(topic_partition.topic)
    if topic is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_partition.topic}")
    partition = topic.partitions.get(topic_partition.partition)
    if partition is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic_partition}")
    is_preferred = election is Election.PREFERRED
    if partition.leader == partition.preferred_replica if is_preferred else partition.leader != NO_LEADER:
        raise ApiError(Error.ELECTION_NOT_NEEDED)
    change = changes.change(topic, topic_partition.partition, partition)
    change.election = election
    record = change.build()
    if record is None:
        raise ApiError(Error.PREFERRED_LEADER_NOT_AVAILABLE if is_preferred else Error.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return record


def balance_leaders(
    image: MetadataImage,
    settings: ControllerSettings = DEFAULT_SETTINGS,
    max_elections: int = MAX_ELECTIONS_PER_TASK,
) -> ControllerResult[bool]:
    """Elects the preferred replicas as leaders where they are eligible (the task of auto.leader.rebalance.enable).

    The response is True if the task ended at `max_elections`, so that the caller has to repeat it at once.
    """
    changes = PartitionChanges(image, settings)

    def candidates() -> Iterator[PartitionChange]:
        for found in partitions_where(image, lambda each: each.leader != each.preferred_replica):
            change = changes.change(*found)
            change.election = Election.PREFERRED
            yield change

    return _elect_at_most(max_elections, candidates())


def elect_unclean_leaders(
    image: MetadataImage,
    settings: ControllerSettings = DEFAULT_SETTINGS,
    max_elections: int = MAX_ELECTIONS_PER_TASK,
) -> ControllerResult[bool]:
    """Elects a live replica, even one that is not in sync, as the leader of each partition without a leader.

    Only topics with unclean.leader.election.enable=true are concerned. The response is True if the task ended at
    `max_elections`, so that the caller has to repeat it at once.
    """
    changes = PartitionChanges(image, settings)
    return _elect_at_most(
        max_elections,
        (
            changes.change(topic, partition_id, partition, by_config=True)
            for topic, partition_id, partition in partitions_without_leader(image)
            if may_elect_uncleanly(image, topic.name, settings)
        ),
    )


def _elect_at_most(max_elections: int, candidates: Iterable[PartitionChange]) -> ControllerResult[bool]:
    """Returns the records of at most `max_elections` of the partition changes in `candidates`. Changes without effect
    are skipped.

    The response is True if this limit was reached, so that more elections may be possible.
    """
    built = (record for change in candidates if (record := change.build()) is not None)
    records = list(islice(built, max_elections))
    return ControllerResult(records, len(records) >= max_elections)
