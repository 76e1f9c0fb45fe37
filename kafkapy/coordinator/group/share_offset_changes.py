"""Makes the records that the group coordinator appends when start offsets of a share group are altered or deleted.

The records say for which partitions the share coordinator has to initialize or delete the group's share state. This
module has no state and does no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkapy.coordinator.group.share_group import (
    ShareGroup,
    StatePartitions,
    TopicPartitions,
    with_partitions,
)
from kafkapy.coordinator.group.share_records import group_epoch_record, states_record
from kafkapy.coordinator.record import CoordinatorRecord, CoordinatorResult


def begin_alteration(
    group: ShareGroup, partitions: Mapping[bytes, TopicPartitions], *, is_new: bool
) -> CoordinatorResult[int]:
    """Returns the records that mark the states of `partitions` as being initialized; the response is the state epoch.

    If `is_new` is True, the records also create the group. Raises ApiError NON_EMPTY_GROUP if the group has members.
    """
    group.validate_deletion()
    records: list[CoordinatorRecord] = []
    if is_new:
        records.append(group_epoch_record(group.group_id, group.group_epoch, 0))
    if partitions:
        records.append(states_record(group.group_id, initializing(group.states, partitions)))
    return CoordinatorResult(records, group.group_epoch)


def initializing(states: StatePartitions, added: Mapping[bytes, TopicPartitions]) -> StatePartitions:
    """Returns `states` with the partitions of `added` marked as being initialized."""
    union = with_partitions(states.initializing, added)
    deleting = {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in union}
    return StatePartitions(union, states.initialized, deleting)


def without_deleted_topics(states: StatePartitions, topic_ids: Collection[bytes]) -> StatePartitions:
    """Returns `states` without the partitions of the topics `topic_ids`, which were deleted."""
    deleting = {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in topic_ids}
    return StatePartitions(_without(states.initializing, topic_ids), _without(states.initialized, topic_ids), deleting)


def begin_deletion(
    group: ShareGroup, topics: Mapping[bytes, str] | None, partition_counts: Mapping[bytes, int]
) -> CoordinatorResult[dict[bytes, frozenset[int]]]:
    """Returns the record that marks the states of `topics` (id -> name) as being deleted; None means all topics.

    The response has the partitions whose states have to be deleted, by topic id; topics without states are left out.
    `partition_counts` is used for topics whose deletion has begun before, since the group no longer knows their
    partitions. Raises ApiError NON_EMPTY_GROUP if the group has members.
    """
    group.validate_deletion()
    states = group.states
    if topics is None:
        named = {**states.initializing, **states.initialized}
        topics = {**{topic_id: each.topic for topic_id, each in named.items()}, **states.deleting}
        known = {each: with_partitions(states.initializing, states.initialized)[each].partitions for each in named}
    else:
        known = {topic_id: each.partitions for topic_id, each in states.initialized.items()}
    to_delete: dict[bytes, frozenset[int]] = {}
    for topic_id in topics:
        if topic_id in known:
            to_delete[topic_id] = known[topic_id]
        elif topic_id in states.deleting:
            to_delete[topic_id] = frozenset(range(partition_counts.get(topic_id, 0)))
    if not to_delete:
        return CoordinatorResult(response=to_delete)
    changed = StatePartitions(
        _without(states.initializing, to_delete),
        _without(states.initialized, to_delete),
        {**states.deleting, **{topic_id: topics[topic_id] for topic_id in to_delete}},
    )
    return CoordinatorResult([states_record(group.group_id, changed)], to_delete)


def end_deletion(group: ShareGroup, topic_ids: Collection[bytes]) -> CoordinatorResult[bool]:
    """Returns the record that removes the topics `topic_ids`, whose states were deleted, from the group.

    The response is always True.
    """
    deleting = {topic_id: name for topic_id, name in group.states.deleting.items() if topic_id not in topic_ids}
    return CoordinatorResult([states_record(group.group_id, group.states._replace(deleting=deleting))], True)


def _without(partitions: Mapping[bytes, TopicPartitions], topic_ids: Collection[bytes]) -> dict[bytes, TopicPartitions]:
    return {topic_id: each for topic_id, each in partitions.items() if topic_id not in topic_ids}
