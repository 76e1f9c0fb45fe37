"""Which committed offsets are forgotten (KIP-211)."""

from __future__ import annotations

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.consumer_group import ConsumerGroup


def is_expired(
    group: ClassicGroup | ConsumerGroup | None,
    topic: str,
    committed: CommittedOffset,
    now_ms: int,
    retention_ms: int,
) -> bool:
    """Whether the offset of a group (None: of a kind that is not served) may go.

    - A commit that carries its own expiry (before 2.1) goes by that one.
    - No group management (a simple consumer): retention counts from the commit.
    - Empty: from the moment the last member left.
    - With members: only topics that nobody subscribes to any more, from the commit; never if that cannot be known.
    - A consumer group: from the commit, unless a member subscribes to the topic.
    """
    if committed.expire_timestamp_ms != -1:
        return now_ms >= committed.expire_timestamp_ms
    since_ms = committed.commit_timestamp_ms
    if isinstance(group, ConsumerGroup):
        if group.is_subscribed_to(topic):
            return False
    elif group is not None and group.protocol_type is not None:
        if group.is_in(GroupState.EMPTY):
            since_ms = group.state_timestamp_ms
        elif group.subscribed_topics is None or group.is_subscribed_to(topic):
            return False
    return now_ms - since_ms >= retention_ms
