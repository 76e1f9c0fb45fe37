"""Records of streams groups in `__consumer_offsets`: types 17 and 19 to 23."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.coordinator.group.group_records import (
    Replay,
    current_replay,
    group_record,
    replay,
    replay_group_epoch,
    replay_target_epoch,
    subscription_replay,
    target_replay,
    tombstone,
    tombstones,
    with_assignment_epochs,
)
from kafkapy.coordinator.group.member_state import MemberState
from kafkapy.coordinator.group.streams.streams_group import StreamsGroup
from kafkapy.coordinator.group.streams.streams_member import (
    OwnedTasks,
    StreamsMember,
    TaskAssignment,
    Tasks,
    TasksWithEpochs,
)
from kafkapy.coordinator.group.streams.topology import TopicInfo, Topology, topology_from
from kafkapy.coordinator.record import CoordinatorRecord
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

# The states of members in records of the current assignment.
_STATES = {1: MemberState.STABLE, 2: MemberState.UNREVOKED, 3: MemberState.UNRELEASED, 127: MemberState.UNKNOWN}
_STATE_NUMBERS = {state: number for number, state in _STATES.items()}
# The keys of a member's records. The tombstone of the last one removes the member.
_MEMBER_KEYS = (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupMemberMetadataKey,
)


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
    return group_record(StreamsGroupMetadataKey(group_id=group_id), value)


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
    return group_record(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


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
    return group_record(StreamsGroupTopologyKey(group_id=group_id), value)


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
    return group_record(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: TaskAssignment) -> CoordinatorRecord:
    task_ids = StreamsGroupTargetAssignmentMemberValue.TaskIds
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_task_ids(task_ids, target.active),
        standby_tasks=_task_ids(task_ids, target.standby),
        warmup_tasks=_task_ids(task_ids, target.warmup),
    )
    return group_record(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    task_ids = StreamsGroupCurrentMemberAssignmentValue.TaskIds
    assigned, pending = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=_STATE_NUMBERS[member.state],
        active_tasks=_active_task_ids(assigned.active),
        standby_tasks=_task_ids(task_ids, assigned.standby),
        warmup_tasks=_task_ids(task_ids, assigned.warmup),
        active_tasks_pending_revocation=_active_task_ids(pending.active),
        standby_tasks_pending_revocation=_task_ids(task_ids, pending.standby),
        warmup_tasks_pending_revocation=_task_ids(task_ids, pending.warmup),
    )
    return group_record(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


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
    """Returns the tombstones of all records of one member."""
    return tombstones(_MEMBER_KEYS, group_id=group_id, member_id=member_id)


def group_tombstones(group: StreamsGroup) -> list[CoordinatorRecord]:
    """Returns the tombstones of all records of the group. The tombstone of the group epoch removes the group; the
    tombstone of the topology comes after it, as in Apache Kafka."""
    group_id = group.group_id
    current, target, metadata = (
        [tombstone(key_class(group_id=group_id, member_id=member_id)) for member_id in group.members]
        for key_class in _MEMBER_KEYS
    )
    target_epoch = tombstone(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id))
    rest = tombstones((StreamsGroupMetadataKey, StreamsGroupTopologyKey), group_id=group_id)
    return [*current, *target, target_epoch, *metadata, *rest]


# -- reading


def replay_into(group: StreamsGroup, kind: int, key_bytes: bytes, value_bytes: bytes | None) -> bool:
    """Applies a record of type `kind` (the number at the start of its key) to its group. Returns True if the record is
    the tombstone that deletes the group."""
    return replay(_REPLAYS, group, kind, key_bytes, value_bytes)


def _replay_group_epoch(group: StreamsGroup, key: Any, value: Any) -> bool:
    if value is not None:
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}
    return replay_group_epoch(group, key, value)


def _replay_topology(group: StreamsGroup, key: Any, value: Any) -> None:
    group.topology = None if value is None else topology_from(value)


def _member_from(value: Any) -> dict[str, Any]:
    endpoint = value.user_endpoint
    return {
        "instance_id": value.instance_id,
        "rack_id": value.rack_id,
        "client_id": value.client_id,
        "client_host": value.client_host,
        "rebalance_timeout_ms": value.rebalance_timeout_ms,
        "topology_epoch": value.topology_epoch,
        "process_id": value.process_id,
        "user_endpoint": None if endpoint is None else (endpoint.host, endpoint.port),
        "client_tags": tuple(sorted((each.key, each.value) for each in value.client_tags)),
    }


def _target_from(value: Any) -> TaskAssignment:
    return TaskAssignment(
        tasks_from(value.active_tasks), tasks_from(value.standby_tasks), tasks_from(value.warmup_tasks)
    )


def _current_from(value: Any) -> dict[str, Any]:
    return {
        "state": _STATES.get(value.state, MemberState.UNKNOWN),
        "assigned": OwnedTasks(
            _active_from(value.active_tasks, value.member_epoch),
            tasks_from(value.standby_tasks),
            tasks_from(value.warmup_tasks),
        ),
        "pending_revocation": OwnedTasks(
            _active_from(value.active_tasks_pending_revocation, value.member_epoch),
            tasks_from(value.standby_tasks_pending_revocation),
            tasks_from(value.warmup_tasks_pending_revocation),
        ),
    }


def tasks_from(entries: Iterable[Any]) -> dict[str, frozenset[int]]:
    """Returns the tasks that the `TaskIds` entries of a message describe: partitions by subtopology id."""
    return {entry.subtopology_id: frozenset(entry.partitions) for entry in entries}


def _active_from(entries: Iterable[Any], member_epoch: int) -> dict[str, dict[int, int]]:
    return {entry.subtopology_id: with_assignment_epochs(entry, member_epoch) for entry in entries}


_NO_TASKS = {"state": MemberState.STABLE, "assigned": OwnedTasks(), "pending_revocation": OwnedTasks()}
_REPLAYS: dict[int, Replay] = {
    GROUP_EPOCH_KEY: _replay_group_epoch,
    MEMBER_KEY: subscription_replay(StreamsMember, _member_from),
    TARGET_EPOCH_KEY: replay_target_epoch,
    TARGET_KEY: target_replay(_target_from),
    CURRENT_KEY: current_replay(StreamsMember, _current_from, _NO_TASKS),
    TOPOLOGY_KEY: _replay_topology,
}
