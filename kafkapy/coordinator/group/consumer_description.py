"""The response of ConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.coordinator.group.assignment import Assignment, named_topic_entries
from kafkapy.coordinator.group.consumer_group import ConsumerGroup
from kafkapy.coordinator.group.consumer_member import ConsumerMember, partitions_of
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.metadata.topics_image import TopicImage
from kafkapy.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


def described_group(
    group: ConsumerGroup, settings: ConsumerGroupSettings
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    topics = settings.image().topics.by_id
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(settings.assignors),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(
    group: ConsumerGroup, member: ConsumerMember, topics: Mapping[bytes, TopicImage]
) -> ConsumerGroupDescribeResponse.Member:
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(_consumed(member), topics),
        target_assignment=_assignment(group.target.get(member.member_id, {}), topics),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _consumed(member: ConsumerMember) -> Assignment:
    """Returns the partitions that the member may still consume, including partitions that it has to revoke."""
    consumed = partitions_of(member.assigned)
    for topic_id, partitions in partitions_of(member.pending_revocation).items():
        consumed[topic_id] = consumed.get(topic_id, frozenset()) | partitions
    return consumed


def _assignment(assignment: Assignment, topics: Mapping[bytes, TopicImage]) -> ConsumerGroupDescribeResponse.Assignment:
    """Returns the assignment for the response, without deleted topics, because they have no name."""
    entry = ConsumerGroupDescribeResponse.TopicPartitions
    return ConsumerGroupDescribeResponse.Assignment(topic_partitions=named_topic_entries(entry, assignment, topics))
