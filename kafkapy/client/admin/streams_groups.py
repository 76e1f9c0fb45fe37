"""The description of streams groups (KIP-1071): their topology, members and tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkapy.client.admin.requests import error_of
from kafkapy.client.admin.results import Results
from kafkapy.client.admin.share_groups import ShareGroupOperations
from kafkapy.client.cluster import Node
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest

Tasks = tuple[tuple[str, tuple[int, ...]], ...]  # subtopology and its partitions


class InternalTopic(NamedTuple):
    """An internal topic of a topology; 0 partitions mean that the number is derived from other topics."""

    name: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class Subtopology(NamedTuple):
    """A part of a topology whose tasks are assigned independently of the other parts."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[InternalTopic, ...]
    repartition_source_topics: tuple[InternalTopic, ...]

    @property
    def internal_topics(self) -> frozenset[str]:
        """The names of the changelog and repartition topics."""
        named = (*self.changelog_topics, *self.repartition_source_topics)
        return frozenset(each.name for each in named).union(self.repartition_sink_topics)


class StreamsAssignment(NamedTuple):
    """The tasks of a member: those it processes, standby copies of their state, and tasks whose state it restores."""

    active: Tasks
    standby: Tasks
    warmup: Tasks


class StreamsMemberDescription(NamedTuple):
    """A member of a streams group: one thread of an application's process, with its tasks.

    `assignment` has the member's present tasks, and `target` the tasks that it will have after the rebalance.
    `process_id` identifies the process. `is_classic` is True for a member that uses the classic protocol.
    """

    member_id: str
    epoch: int
    instance_id: str | None
    rack: str | None
    client_id: str
    host: str
    topology_epoch: int
    process_id: str
    is_classic: bool
    assignment: StreamsAssignment
    target: StreamsAssignment


class StreamsGroupDescription(NamedTuple):
    """A streams group.

    `state` is Empty, NotReady, Assigning, Reconciling, Stable or Dead. A group is not ready while a source topic is
    missing, topics are partitioned differently, or internal topics are not created. `topology_epoch` is None while the
    group has no topology.
    """

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    subtopologies: tuple[Subtopology, ...]
    members: tuple[StreamsMemberDescription, ...]
    coordinator: Node


class StreamsGroupOperations(ShareGroupOperations):
    """Operations on streams groups.

    `list_groups` lists them, and `delete_groups`, `list_group_offsets`, `alter_group_offsets` and
    `delete_group_offsets` work as for consumer groups.
    """

    def describe_streams_groups(
        self, groups: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, StreamsGroupDescription]:
        """Describes streams groups. Blocks.

        A group of another type, or one that does not exist, has the error GROUP_ID_NOT_FOUND.
        """
        return self._request_of_groups(
            groups,
            ApiKey.STREAMS_GROUP_DESCRIBE,
            lambda keys: StreamsGroupDescribeRequest(group_ids=keys),
            lambda result, node: error_of(result) or _streams_group(result, node),
            timeout,
        )


def _streams_group(result: Any, coordinator: Node) -> StreamsGroupDescription:
    topology = result.topology
    subtopologies = () if topology is None else topology.subtopologies or ()
    return StreamsGroupDescription(
        result.group_id,
        result.group_state,
        result.group_epoch,
        result.assignment_epoch,
        None if topology is None else topology.epoch,
        tuple(
            Subtopology(
                each.subtopology_id,
                tuple(each.source_topics),
                tuple(each.repartition_sink_topics),
                tuple(map(_internal_topic, each.state_changelog_topics)),
                tuple(map(_internal_topic, each.repartition_source_topics)),
            )
            for each in subtopologies
        ),
        tuple(map(_member, result.members)),
        coordinator,
    )


def _internal_topic(topic: Any) -> InternalTopic:
    configs = {each.key: each.value for each in topic.topic_configs}
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _member(member: Any) -> StreamsMemberDescription:
    return StreamsMemberDescription(
        member.member_id,
        member.member_epoch,
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topology_epoch,
        member.process_id,
        member.is_classic,
        _assignment(member.assignment),
        _assignment(member.target_assignment),
    )


def _assignment(assignment: Any) -> StreamsAssignment:
    def tasks(listed: Any) -> Tasks:
        return tuple((each.subtopology_id, tuple(each.partitions)) for each in listed)

    return StreamsAssignment(
        tasks(assignment.active_tasks), tasks(assignment.standby_tasks), tasks(assignment.warmup_tasks)
    )
