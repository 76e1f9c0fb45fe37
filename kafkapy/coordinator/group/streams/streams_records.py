"""Records of streams groups in `__consumer_offsets`: types 17 and 19 to 23."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.coordinator.group.consumer_member import LEAVE_EPOCH
from kafkapy.coordinator.group.streams.streams_group import StreamsGroup
from kafkapy.coordinator.group.streams.streams_member import (
    MemberState,
    OwnedTasks,
    StreamsMember,
    TaskAssignment,
    Tasks,
    TasksWithEpochs,
)
from kafkapy.coordinator.group.streams.topology import TopicInfo, Topology, topology_from
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.coordinator_record import decode_coordinator_key, decode_coordinator_value, encode_coordinator
from kafkapy.protocol.messages.coordinator_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

GROUP_EPOCH_KEY, MEMBER_KEY, TARGET_EPOCH_KEY = 17, 19, 20
TARGET_KEY, CURRENT_KEY, TOPOLOGY_KEY = 21, 22, 23


# -- writing


def group_epoch_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)
        ],
    )
    return _record(StreamsGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    endpoint = None
    if member.user_endpoint is not None:
        host, port = member.user_endpoint
        endpoint = StreamsGroupMemberMetadataValue.Endpoint(host=host, port=port)
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint,
        client_tags=[StreamsGroupMemberMetadataValue.KeyValue(key=key, value=tag) for key, tag in member.client_tags],
    )
    return _record(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def topology_record(group_id: str, topology: Topology) -> CoordinatorRecord:
    subtopologies = [
        StreamsGroupTopologyValue.Subtopology(
            subtopology_id=each.subtopology_id,
            source_topics=list(each.source_topics),
            source_topic_regex=list(each.source_topic_regex),
            repartition_sink_topics=list(each.sink_topics),
            repartition_source_topics=_topic_infos(each.repartition_topics),
            state_changelog_topics=_topic_infos(each.changelog_topics),
            copartition_groups=[
                StreamsGroupTopologyValue.CopartitionGroup(
                    source_topics=list(group.source_topics),
                    source_topic_regex=list(group.source_topic_regex),
                    repartition_source_topics=list(group.repartition_topics),
                )
                for group in each.copartition_groups
            ],
        )
        for each in topology.subtopologies.values()
    ]
    value = StreamsGroupTopologyValue(epoch=topology.epoch, subtopologies=subtopologies)
    return _record(StreamsGroupTopologyKey(group_id=group_id), value)


def _topic_infos(topics: Iterable[TopicInfo]) -> list[StreamsGroupTopologyValue.TopicInfo]:
    return [
        StreamsGroupTopologyValue.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[StreamsGroupTopologyValue.TopicConfig(key=key, value=value) for key, value in topic.configs],
        )
        for topic in topics
    ]


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return _record(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: TaskAssignment) -> CoordinatorRecord:
    task_ids = StreamsGroupTargetAssignmentMemberValue.TaskIds
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_task_ids(task_ids, target.active),
        standby_tasks=_task_ids(task_ids, target.standby),
        warmup_tasks=_task_ids(task_ids, target.warmup),
    )
    return _record(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    task_ids = StreamsGroupCurrentMemberAssignmentValue.TaskIds
    assigned, pending = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=int(member.state),
        active_tasks=_active_task_ids(assigned.active),
        standby_tasks=_task_ids(task_ids, assigned.standby),
        warmup_tasks=_task_ids(task_ids, assigned.warmup),
        active_tasks_pending_revocation=_active_task_ids(pending.active),
        standby_tasks_pending_revocation=_task_ids(task_ids, pending.standby),
        warmup_tasks_pending_revocation=_task_ids(task_ids, pending.warmup),
    )
    return _record(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def _task_ids(message: Any, tasks: Tasks) -> list[Any]:
    return [message(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]


def _active_task_ids(tasks: TasksWithEpochs) -> list[Any]:
    return [
        StreamsGroupCurrentMemberAssignmentValue.TaskIds(
            subtopology_id=name,
            partitions=sorted(tasks[name]),
            assignment_epochs=[tasks[name][partition] for partition in sorted(tasks[name])],
        )
        for name in sorted(tasks)
    ]


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Returns the tombstones of a member. The metadata is last, because its deletion removes the member."""
    return [
        _tombstone(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        _tombstone(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        _tombstone(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group: StreamsGroup) -> list[CoordinatorRecord]:
    """Returns the tombstones of all records of the group. The deletion of the epoch removes the group; the topology
    follows, as in Apache Kafka."""
    group_id = group.group_id
    records = []
    for member_id in group.members:
        records.append(_tombstone(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)))
    for member_id in group.members:
        records.append(_tombstone(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)))
    records.append(_tombstone(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)))
    for member_id in group.members:
        records.append(_tombstone(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)))
    records.append(_tombstone(StreamsGroupMetadataKey(group_id=group_id)))
    records.append(_tombstone(StreamsGroupTopologyKey(group_id=group_id)))
    return records


def _record(key: Any, value: Any) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(key), encode_coordinator(value, 0))


def _tombstone(key: Any) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(key), None)


# -- reading


def replay_into(group: StreamsGroup, kind: int, key_bytes: bytes, value_bytes: bytes | None) -> bool:
    """Applies one record to its group; returns True if the record is the tombstone that deletes the group."""
    key: Any = decode_coordinator_key(key_bytes)
    value: Any = None if value_bytes is None else decode_coordinator_value(kind, value_bytes)
    if kind == GROUP_EPOCH_KEY:
        if value is None:
            return True
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}
    elif kind == TARGET_EPOCH_KEY:
        group.assignment_epoch = -1 if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp
    elif kind == TOPOLOGY_KEY:
        group.topology = None if value is None else topology_from(value)
    elif kind == MEMBER_KEY:
        _replay_member(group, key.member_id, value)
    elif kind == TARGET_KEY:
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            group.target[key.member_id] = TaskAssignment(
                tasks_from(value.active_tasks), tasks_from(value.standby_tasks), tasks_from(value.warmup_tasks)
            )
    elif kind == CURRENT_KEY:
        _replay_current(group, key.member_id, value)
    return False


def _replay_member(group: StreamsGroup, member_id: str, value: Any) -> None:
    if value is None:
        group.remove(member_id)
        return
    endpoint = value.user_endpoint
    old = group.members.get(member_id) or StreamsMember(member_id)
    group.put(
        old._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
            client_tags=tuple(sorted((each.key, each.value) for each in value.client_tags)),
        )
    )


def _replay_current(group: StreamsGroup, member_id: str, value: Any) -> None:
    old = group.members.get(member_id)
    if value is None:
        if old is not None:
            gone = old._replace(member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, state=MemberState.STABLE)
            group.put(gone._replace(assigned=OwnedTasks(), pending_revocation=OwnedTasks()))
        return
    states = {int(state) for state in MemberState}
    group.put(
        (old or StreamsMember(member_id))._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if value.state in states else MemberState.UNKNOWN,
            assigned=OwnedTasks(
                _active_from(value.active_tasks, value.member_epoch),
                tasks_from(value.standby_tasks),
                tasks_from(value.warmup_tasks),
            ),
            pending_revocation=OwnedTasks(
                _active_from(value.active_tasks_pending_revocation, value.member_epoch),
                tasks_from(value.standby_tasks_pending_revocation),
                tasks_from(value.warmup_tasks_pending_revocation),
            ),
        )
    )


def tasks_from(entries: Iterable[Any]) -> dict[str, frozenset[int]]:
    """Returns the tasks of a message's TaskIds."""
    return {entry.subtopology_id: frozenset(entry.partitions) for entry in entries}


def _active_from(entries: Iterable[Any], member_epoch: int) -> dict[str, dict[int, int]]:
    """Returns the active tasks of a record with the epoch in which each was assigned.

    Records from before 4.3 have no assignment epochs. The member epoch of the record replaces them.
    """
    tasks = {}
    for entry in entries:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [member_epoch] * len(entry.partitions)
        tasks[entry.subtopology_id] = dict(zip(entry.partitions, epochs, strict=True))
    return tasks
