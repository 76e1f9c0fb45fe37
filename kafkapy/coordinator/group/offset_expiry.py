"""The retention of committed offsets (KIP-211)."""

from __future__ import annotations

from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.group import Group


def is_expired(group: Group, topic: str, committed: CommittedOffset, wall_ms: int, retention_ms: int) -> bool:
    """Returns True if the offset may be deleted at the time `wall_ms`.

    No offset expires while the group says that its retention has not begun. Then, an offset that was committed with its
    own expiry time (by clients before 2.1) expires at that time. Any other offset expires `retention_ms` after the time
    at which the group says that its retention begins.
    """
    start_ms = group.retention_start_ms(topic, committed)
    if start_ms is None:
        return False
    if committed.expire_timestamp_ms != -1:
        return wall_ms >= committed.expire_timestamp_ms
    return wall_ms - start_ms >= retention_ms
