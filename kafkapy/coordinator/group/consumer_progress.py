"""Computes what follows from a change of one member: the group epoch, the target assignment of all members, and the
next step of the changed member toward its target.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.coordinator.group.assignment import Assignment
from kafkapy.coordinator.group.consumer_assignors import ASSIGNORS, AssignedMember
from kafkapy.coordinator.group.consumer_group import ConsumerGroup
from kafkapy.coordinator.group.consumer_member import ConsumerMember
from kafkapy.coordinator.group.consumer_reconciliation import next_step
from kafkapy.coordinator.group.consumer_records import (
    current_record,
    group_epoch_record,
    regex_tombstone,
    subscription_record,
    target_epoch_record,
    target_record,
)
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.consumer_topics import assigned_topics, metadata_hash, topic_ids
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.metadata.image import MetadataImage
from kafkapy.named_tuple import NamedTuple


class MemberChange(NamedTuple):
    """A member before and after its request.

    `owned` are the partitions that the client says it has; None if the request does not say. If a static member has
    returned, `replaced` is its old member id, whose target and partitions the new id takes over; otherwise None.
    """

    before: ConsumerMember
    after: ConsumerMember
    owned: Assignment | None = None
    replaced: str | None = None


def advance_member(
    group: ConsumerGroup,
    change: MemberChange,
    settings: ConsumerGroupSettings,
    wall_ms: int,
    records: list[CoordinatorRecord],
) -> ConsumerMember:
    """Handles a change of one member. Appends to `records` the records of the member, of the group epoch and of the
    target assignments that have changed.

    Returns the member as it will be, one step closer to its target: the member revokes partitions, gets partitions that
    no other member has, or enters the target's epoch. The group itself changes when the records are replayed; only
    `group.checked_topics` is set at once.
    """
    image = settings.image()
    before, after = change.before, change.after
    is_new = before.member_id not in group.members and change.replaced is None
    if after.subscription != before.subscription or is_new:
        records.append(subscription_record(group.group_id, after))
    records += _unused_regex(group, change)
    topics = group.topics_of(after)
    has_changed = after.subscribed_topic_names != before.subscribed_topic_names
    is_resolved = not after.subscribed_topic_regex or after.subscribed_topic_regex in group.regexes
    if is_resolved:  # Otherwise the group epoch increases when the expression has been evaluated.
        has_changed = has_changed or topics != group.topics_of(before)
    epoch = group.group_epoch
    if is_resolved or has_changed:
        epoch = _group_epoch(group, after, image, has_changed, records)
    target_epoch, target = group.assignment_epoch, group.target.get(change.replaced or after.member_id, {})
    if epoch > target_epoch and _is_assignment_due(group, settings, wall_ms):
        target_epoch = epoch
        target = _assign(group, change, settings, image, records).get(after.member_id, {})
        records.append(target_epoch_record(group.group_id, epoch, wall_ms))
    permitted_owners = (None, after.member_id, change.replaced)
    member = next_step(
        after,
        target_epoch,
        target,
        lambda topic_id, partition: group.owners.get((topic_id, partition)) not in permitted_owners,
        change.owned,
        topic_ids(image, topics) if has_changed and is_resolved else None,
    )
    _check_step(group, before, member, permitted_owners, epoch)
    if member.current_assignment != before.current_assignment or is_new:
        records.append(current_record(group.group_id, member))
    return member


def _check_step(
    group: ConsumerGroup,
    before: ConsumerMember,
    after: ConsumerMember,
    permitted_owners: tuple[str | None, ...],
    group_epoch: int,
) -> None:
    """Asserts that the member's new epoch does not exceed `group_epoch`, and that no other member owns its new
    partitions.

    `permitted_owners` are the owners that a new partition may have had: None (no owner), the member itself, and the
    member id that it replaces.
    """
    assert after.member_epoch <= group_epoch, (
        f"group {group.group_id} in epoch {group_epoch}: member {after.member_id} would be in {after.member_epoch}"
    )
    if after.assigned is before.assigned:
        return
    for topic_id, partitions in after.assigned.items():
        for partition in partitions.keys() - before.assigned.get(topic_id, {}).keys():
            owner = group.owners.get((topic_id, partition))
            assert owner in permitted_owners, (
                f"group {group.group_id}: partition {partition} would belong to {owner} and {after.member_id}"
            )


def epoch_after_removal(
    group: ConsumerGroup, removed: Iterable[str], settings: ConsumerGroupSettings
) -> list[CoordinatorRecord]:
    """Returns the records that must follow the tombstones of the members with the ids `removed`: tombstones of regular
    expressions that no remaining member uses, and a new group epoch."""
    gone = set(removed)
    records = []
    kept = {member.subscribed_topic_regex for member in group.members.values() if member.member_id not in gone}
    for pattern in group.regexes:
        if pattern not in kept:
            records.append(regex_tombstone(group.group_id, pattern))
    digest = metadata_hash(settings.image(), group.subscribed_topics(without=gone))
    records.append(group_epoch_record(group.group_id, group.group_epoch + 1, digest))
    return records


def _unused_regex(group: ConsumerGroup, change: MemberChange) -> list[CoordinatorRecord]:
    old = change.before.subscribed_topic_regex
    if old == change.after.subscribed_topic_regex or old not in group.regexes:
        return []
    others = (member for member in group.members.values() if member.member_id != change.before.member_id)
    if any(member.subscribed_topic_regex == old for member in others):
        return []
    return [regex_tombstone(group.group_id, old)]


def _group_epoch(
    group: ConsumerGroup,
    after: ConsumerMember,
    image: MetadataImage,
    has_changed: bool,
    records: list[CoordinatorRecord],
) -> int:
    """Returns the group's epoch after a request of the member `after`.

    If `has_changed` (the member's topics have changed), or if the metadata of the subscribed topics have changed, the
    epoch is increased, and its record is appended to `records`.
    """
    if not has_changed and group.checked_topics is image.topics:
        return group.group_epoch
    digest = metadata_hash(image, group.subscribed_topics(after))
    group.checked_topics = image.topics
    if not has_changed and digest == group.metadata_hash:
        return group.group_epoch
    records.append(group_epoch_record(group.group_id, group.group_epoch + 1, digest))
    return group.group_epoch + 1


def _is_assignment_due(group: ConsumerGroup, settings: ConsumerGroupSettings, wall_ms: int) -> bool:
    elapsed_ms = wall_ms - group.assignment_timestamp_ms
    # If the clock was set back, the assignment is due, so that the group is not blocked.
    return elapsed_ms < 0 or elapsed_ms >= settings.assignment_interval_ms(group.group_id)


def _assign(
    group: ConsumerGroup,
    change: MemberChange,
    settings: ConsumerGroupSettings,
    image: MetadataImage,
    records: list[CoordinatorRecord],
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Computes the target assignment of all members after `change`, and appends the targets that have changed to
    `records`.

    Returns, for each member id, a dictionary with the numbers of the member's partitions by topic id.
    """
    changed = change.after
    members = {**group.members, changed.member_id: changed}
    previous = dict(group.target)
    if change.replaced is not None:
        members.pop(change.replaced, None)
        previous[changed.member_id] = previous.pop(change.replaced, {})
    names = group.subscribed_topics(changed)
    topics = assigned_topics(image, names)
    ids = frozenset(topics)
    known: dict[frozenset[str], frozenset[bytes]] = {}

    def ids_of(member: ConsumerMember) -> frozenset[bytes]:
        subscribed = group.topics_of(member)
        if subscribed not in known:
            known[subscribed] = topic_ids(image, subscribed) & ids
        return known[subscribed]

    assigned = [
        AssignedMember(
            member.member_id, member.instance_id, member.rack_id, ids_of(member), previous.get(member.member_id, {})
        )
        for member in members.values()
    ]
    assignor = ASSIGNORS[group.preferred_assignor(settings.assignors, changed)]
    target = assignor(assigned, topics)
    for member_id, partitions in target.items():
        if member_id not in previous or previous[member_id] != partitions:
            records.append(target_record(group.group_id, member_id, partitions))
    return target
