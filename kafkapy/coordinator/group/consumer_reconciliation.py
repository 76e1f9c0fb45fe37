"""Computes the next step of one member from its present partitions to its target assignment. This module has no state
and does no I/O. A member changes its state on these conditions:

    STABLE       it has to revoke partitions                           -> UNREVOKED
    STABLE       other members still own partitions of its target      -> UNRELEASED
    UNREVOKED    it has revoked the partitions                         -> STABLE or UNRELEASED, by the newest target
    UNRELEASED   the other members have released the partitions        -> STABLE

A member enters the target's epoch as soon as it has nothing left to revoke. It gets a partition only when no other
member owns it.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.coordinator.group.assignment import Assignment
from kafkapy.coordinator.group.consumer_member import ConsumerMember, OwnedPartitions
from kafkapy.coordinator.group.member_state import MemberState

# (topic id, partition) -> whether another member owns it
IsTaken = Callable[[bytes, int], bool]


def next_step(
    member: ConsumerMember,
    target_epoch: int,
    target: Assignment,
    is_taken: IsTaken,
    reported: Assignment | None,
    subscribed_topic_ids: frozenset[bytes] | None,
) -> ConsumerMember:
    """Returns the member one step closer to `target`, its target assignment of the epoch `target_epoch`, or an equal
    member when there is nothing to do.

    `is_taken(topic_id, partition)` returns True if another member owns the partition. `reported` are the partitions
    that the client says it has; None if the request does not say. `subscribed_topic_ids` is None if the subscription
    has not changed after the target was computed. Otherwise it has the ids of the topics that the member subscribes to
    now, and the member must revoke its partitions of other topics at once.
    """
    if member.state is MemberState.STABLE and member.member_epoch == target_epoch:
        return _without_unsubscribed(member, reported, subscribed_topic_ids)
    if member.state is MemberState.UNREVOKED and _still_owns(member.pending_revocation, reported):
        return _without_unsubscribed(member, reported, subscribed_topic_ids)
    return _toward_target(member, target_epoch, target, is_taken, reported, subscribed_topic_ids)


def _toward_target(
    member: ConsumerMember,
    target_epoch: int,
    target: Assignment,
    is_taken: IsTaken,
    reported: Assignment | None,
    subscribed_topic_ids: frozenset[bytes] | None,
) -> ConsumerMember:
    """Returns the member one step closer to `target`, its target assignment of the epoch `target_epoch`.

    The member is in UNREVOKED if it must still revoke partitions. Otherwise it has the epoch of the target and those
    partitions of the target that no other member owns. `is_taken(topic_id, partition)` returns True if another member
    owns the partition. `reported` are the partitions that the client says it has; None if it says nothing.
    If `subscribed_topic_ids` is not None, the member may keep only partitions of these topics.
    """
    kept: dict[bytes, dict[int, int]] = {}
    revoked: dict[bytes, dict[int, int]] = {}
    added: dict[bytes, dict[int, int]] = {}
    has_unreleased = False
    for topic_id in dict.fromkeys((*target, *member.assigned)):
        current = member.assigned.get(topic_id, {})
        wanted = target.get(topic_id, frozenset())
        if subscribed_topic_ids is not None and topic_id not in subscribed_topic_ids:
            wanted = frozenset()
        _put_unless_empty(kept, topic_id, {p: since for p, since in current.items() if p in wanted})
        _put_unless_empty(revoked, topic_id, {p: since for p, since in current.items() if p not in wanted})
        missing = [partition for partition in wanted if partition not in current]
        free = {partition: target_epoch for partition in missing if not is_taken(topic_id, partition)}
        has_unreleased = has_unreleased or len(free) < len(missing)
        _put_unless_empty(added, topic_id, free)
    if revoked and _still_owns(revoked, reported):
        revoking = member.adopt_epoch(member.member_epoch, MemberState.UNREVOKED)
        return revoking._replace(assigned=kept, pending_revocation=revoked)
    for topic_id, partitions in added.items():
        kept[topic_id] = {**kept.get(topic_id, {}), **partitions}
    state = MemberState.UNRELEASED if has_unreleased else MemberState.STABLE
    if (
        (member.member_epoch, member.state) == (target_epoch, state)
        and not member.pending_revocation
        and kept == member.assigned
    ):
        return member
    return member.adopt_epoch(target_epoch, state)._replace(assigned=kept, pending_revocation={})


def _without_unsubscribed(
    member: ConsumerMember, reported: Assignment | None, subscribed_topic_ids: frozenset[bytes] | None
) -> ConsumerMember:
    if subscribed_topic_ids is None:
        return member
    gone = {topic_id: owned for topic_id, owned in member.assigned.items() if topic_id not in subscribed_topic_ids}
    if not gone:
        return member
    kept = {topic_id: owned for topic_id, owned in member.assigned.items() if topic_id in subscribed_topic_ids}
    if not _still_owns(gone, reported) and member.state is not MemberState.UNREVOKED:
        return member._replace(assigned=kept)
    revoking = member.adopt_epoch(member.member_epoch, MemberState.UNREVOKED)
    return revoking._replace(assigned=kept, pending_revocation={**member.pending_revocation, **gone})


def _still_owns(revoked: OwnedPartitions, reported: Assignment | None) -> bool:
    if reported is None:
        return True
    return any(partition in reported.get(topic_id, ()) for topic_id, owned in revoked.items() for partition in owned)


def _put_unless_empty(owned: dict[bytes, dict[int, int]], topic_id: bytes, partitions: dict[int, int]) -> None:
    if partitions:
        owned[topic_id] = partitions
