"""The responses of StreamsGroupHeartbeat and StreamsGroupDescribe."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kafkapy.coordinator.group.streams.streams_group import StreamsGroup
from kafkapy.coordinator.group.streams.streams_member import OwnedTasks, StreamsMember, TaskAssignment
from kafkapy.coordinator.group.streams.topic_configuration import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    PartitionCount,
)
from kafkapy.coordinator.group.streams.topology import Topology
from kafkapy.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse
from kafkapy.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

_Described = StreamsGroupDescribeResponse
# name, partitions, replication factor, configuration
_TopicFields = tuple[str, int, int, Iterable[tuple[str, str]]]


# -- heartbeats


def set_tasks(response: StreamsGroupHeartbeatResponse, tasks: OwnedTasks) -> None:
    """Sets the member's tasks in the response. A response without this call leaves the tasks of the client
    unchanged."""
    response.active_tasks = _task_ids(StreamsGroupHeartbeatResponse.TaskIds, tasks.active)
    response.standby_tasks = _task_ids(StreamsGroupHeartbeatResponse.TaskIds, tasks.standby)
    response.warmup_tasks = _task_ids(StreamsGroupHeartbeatResponse.TaskIds, tasks.warmup)


def _task_ids(message: Any, tasks: Mapping[str, Iterable[int]]) -> list[Any]:
    return [message(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]


def endpoint_partitions(
    members: Iterable[StreamsMember], configured: ConfiguredTopology, partition_count: PartitionCount
) -> list[StreamsGroupHeartbeatResponse.EndpointToPartitions]:
    """Returns the source partitions of the tasks of all members that have an endpoint for interactive queries.

    `partition_count(topic)` returns the number of partitions of an existing topic, and None for any other.
    """
    subtopologies = configured.subtopologies or {}
    return [
        StreamsGroupHeartbeatResponse.EndpointToPartitions(
            user_endpoint=StreamsGroupHeartbeatResponse.Endpoint(
                host=member.user_endpoint[0], port=member.user_endpoint[1]
            ),
            active_partitions=_source_partitions(member.assigned.active, subtopologies, partition_count),
            standby_partitions=_source_partitions(member.assigned.standby, subtopologies, partition_count),
        )
        for member in members
        if member.user_endpoint is not None
    ]


def _source_partitions(
    tasks: Mapping[str, Collection[int]],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    partition_count: PartitionCount,
) -> list[StreamsGroupHeartbeatResponse.TopicPartition]:
    found = []
    for name, partitions in tasks.items():
        if name not in subtopologies:
            continue
        subtopology = subtopologies[name]
        for topic in sorted(subtopology.source_topics | subtopology.repartition_topics.keys()):
            count = partition_count(topic)
            if count is None:
                continue
            # If the member has more tasks than the topic has partitions, the first are listed, as in Apache Kafka.
            first = sorted(partitions)[:count]
            found.append(StreamsGroupHeartbeatResponse.TopicPartition(topic=topic, partitions=first))
    return found


# -- descriptions


def described_group(group: StreamsGroup) -> StreamsGroupDescribeResponse.DescribedGroup:
    return _Described.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[
            _member(member, group.target.get(member_id, TaskAssignment()))
            for member_id, member in group.members.items()
        ],
    )


def _topology(group: StreamsGroup) -> StreamsGroupDescribeResponse.Topology | None:
    """Returns the topology for StreamsGroupDescribe: with the numbers of partitions of its internal topics if they are
    known, otherwise as the members declared it. Returns None if the group has no topology."""
    if group.configured is not None and group.configured.is_ready:
        return _configured_topology(group.configured)
    return None if group.topology is None else _declared_topology(group.topology)


def _configured_topology(configured: ConfiguredTopology) -> StreamsGroupDescribeResponse.Topology:
    return _Described.Topology(
        epoch=configured.epoch,
        subtopologies=[
            _Described.Subtopology(
                subtopology_id=name,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.sink_topics),
                repartition_source_topics=_topic_infos(
                    (topic.name, topic.partitions, topic.replication_factor, topic.configs.items())
                    for topic in each.repartition_topics.values()
                ),
                state_changelog_topics=_topic_infos(
                    (topic.name, topic.partitions, topic.replication_factor, topic.configs.items())
                    for topic in each.changelog_topics.values()
                ),
            )
            for name, each in (configured.subtopologies or {}).items()
        ],
    )


def _declared_topology(topology: Topology) -> StreamsGroupDescribeResponse.Topology:
    return _Described.Topology(
        epoch=topology.epoch,
        subtopologies=[
            _Described.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.sink_topics),
                repartition_source_topics=_topic_infos(each.repartition_topics),
                state_changelog_topics=_topic_infos(each.changelog_topics),
            )
            for each in sorted(topology.subtopologies.values(), key=lambda each: each.subtopology_id)
        ],
    )


def _topic_infos(topics: Iterable[_TopicFields]) -> list[StreamsGroupDescribeResponse.TopicInfo]:
    return [
        _Described.TopicInfo(
            name=name,
            partitions=partitions,
            replication_factor=replication_factor,
            topic_configs=[_Described.KeyValue(key=key, value=value) for key, value in configs],
        )
        for name, partitions, replication_factor, configs in sorted(topics, key=lambda topic: topic[0])
    ]


def _member(member: StreamsMember, target: TaskAssignment) -> StreamsGroupDescribeResponse.Member:
    endpoint = None
    if member.user_endpoint is not None:
        endpoint = _Described.Endpoint(host=member.user_endpoint[0], port=member.user_endpoint[1])
    return _Described.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint,
        client_tags=[_Described.KeyValue(key=key, value=value) for key, value in member.client_tags],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(target),
    )


def _assignment(tasks: Sequence[Mapping[str, Iterable[int]]]) -> StreamsGroupDescribeResponse.Assignment:
    active, standby, warmup = tasks
    return _Described.Assignment(
        active_tasks=_task_ids(_Described.TaskIds, active),
        standby_tasks=_task_ids(_Described.TaskIds, standby),
        warmup_tasks=_task_ids(_Described.TaskIds, warmup),
    )
