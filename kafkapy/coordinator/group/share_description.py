"""The response of ShareGroupDescribe."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.coordinator.group.assignment import named_topic_entries
from kafkapy.coordinator.group.share_assignor import SIMPLE_ASSIGNOR
from kafkapy.coordinator.group.share_group import ShareGroup, ShareMember
from kafkapy.metadata.topics_image import TopicImage
from kafkapy.protocol.messages.share_group_describe import ShareGroupDescribeResponse


def described_share_group(
    group: ShareGroup, topics: Mapping[bytes, TopicImage]
) -> ShareGroupDescribeResponse.DescribedGroup:
    """Returns the description of the group in the ShareGroupDescribe response. `topics` are all topics of the cluster
    by id; deleted topics have no name and are left out."""
    return ShareGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=SIMPLE_ASSIGNOR,
        members=[_member(member, topics) for member in group.members.values()],
    )


def _member(member: ShareMember, topics: Mapping[bytes, TopicImage]) -> ShareGroupDescribeResponse.Member:
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        assignment=ShareGroupDescribeResponse.Assignment(
            topic_partitions=named_topic_entries(ShareGroupDescribeResponse.TopicPartitions, member.assigned, topics)
        ),
    )
