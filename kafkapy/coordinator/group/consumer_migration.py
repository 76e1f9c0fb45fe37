"""The change of a group from the classic to the consumer protocol and back, with its members (KIP-848)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TypeVar

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.classic.classic_member import ClassicMember
from kafkapy.coordinator.group.classic.classic_rebalance import ClassicRebalance
from kafkapy.coordinator.group.classic.classic_records import group_metadata_record, group_tombstone
from kafkapy.coordinator.group.classic.classic_responses import join_error, respond_to_join, respond_to_sync, sync_error
from kafkapy.coordinator.group.consumer_group import ConsumerGroup
from kafkapy.coordinator.group.consumer_member import ClassicMetadata, ConsumerMember, partitions_of
from kafkapy.coordinator.group.consumer_records import group_tombstones, whole_group
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.consumer_topics import metadata_hash
from kafkapy.coordinator.group.embedded_protocol import decode_assignment, decode_subscription, encode_assignment
from kafkapy.coordinator.group.group import Group
from kafkapy.coordinator.record import CoordinatorRecord, CoordinatorResult, StateChange
from kafkapy.coordinator.shard import ShardContext
from kafkapy.errors import ApiError, Error

logger = logging.getLogger("kafka.coordinator.group")

R = TypeVar("R")


class GroupMigration:
    """Converts groups between the classic and the consumer protocol. The object has no state. Only the thread that
    owns it may use it."""

    def __init__(self, context: ShardContext, settings: ConsumerGroupSettings, rebalance: ClassicRebalance) -> None:
        self._context = context
        self._settings = settings
        self._rebalance = rebalance

    # -- classic -> consumer

    def upgrade(self, group: ClassicGroup, records: list[CoordinatorRecord]) -> ConsumerGroup:
        """Returns the consumer group that replaces `group`, and appends its records to `records`.

        Waiting JoinGroups and SyncGroups are answered with REBALANCE_IN_PROGRESS, so that their members join the
        consumer group. Raises ApiError GROUP_ID_NOT_FOUND if the group cannot become a consumer group.
        """
        upgraded = self._upgraded(group)
        logger.info("Group %s is upgraded from classic to consumer.", group.group_id)
        self._rebalance.cancel_all(group)
        for member in list(group.members.values()):
            respond_to_join(member, join_error(member.member_id, Error.REBALANCE_IN_PROGRESS))
            respond_to_sync(member, sync_error(Error.REBALANCE_IN_PROGRESS))
        records.append(group_tombstone(group.group_id))
        records += whole_group(upgraded)
        return upgraded

    def _upgraded(self, group: ClassicGroup) -> ConsumerGroup:
        """Returns the consumer group that replaces `group`, before any record is written.

        Raises ApiError GROUP_ID_NOT_FOUND if upgrades are disabled, the members are not consumers, the group is too
        large, or a member's metadata is malformed.
        """
        refusal = None
        if not self._settings.can_upgrade:
            refusal = "online upgrade is disabled"
        elif not group.uses_consumer_protocol:
            refusal = "the group does not use the consumer embedded protocol"
        elif len(group.members) > self._settings.max_group_size:
            refusal = "the group size exceeds the maximum size"
        if refusal is None:
            try:
                return self._from_classic(group)
            except ValueError:
                refusal = "the embedded consumer protocol is malformed"
        message = f"Cannot upgrade classic group {group.group_id} to consumer group because {refusal}."
        raise ApiError(Error.GROUP_ID_NOT_FOUND, message)

    def _from_classic(self, group: ClassicGroup) -> ConsumerGroup:
        """Returns a consumer group with the members and assignments of the classic group. Raises ValueError if the
        metadata or the assignment of a member is malformed."""
        image = self._settings.image()
        upgraded = ConsumerGroup(group.group_id)
        upgraded.group_epoch = upgraded.assignment_epoch = group.generation_id
        for member in group.members.values():
            metadata = member.metadata(group.protocol_name) or member.protocols[0][1]
            subscription = decode_subscription(metadata, image.topics)
            assigned = decode_assignment(member.assignment, image.topics)
            upgraded.put(
                ConsumerMember(
                    member.member_id,
                    member_epoch=group.generation_id,
                    previous_member_epoch=group.generation_id,
                    instance_id=member.group_instance_id,
                    rack_id=subscription.rack_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    subscribed_topic_names=subscription.topics,
                    classic=ClassicMetadata(member.session_timeout_ms, tuple(member.protocols)),
                    assigned={
                        topic_id: dict.fromkeys(partitions, group.generation_id)
                        for topic_id, partitions in assigned.items()
                    },
                )
            )
            upgraded.target[member.member_id] = assigned
        upgraded.metadata_hash = metadata_hash(image, upgraded.subscribed_topics())
        return upgraded

    # -- consumer -> classic

    def is_downgrade_due(self, group: ConsumerGroup, gone: Collection[str]) -> bool:
        """Returns True if the group has to become a classic group when the members with the ids in `gone` are removed.

        This is the case if the configuration permits it, and if at least one member remains and all remaining members
        use the classic protocol.
        """
        left = [member for member_id, member in group.members.items() if member_id not in gone]
        return self._settings.can_downgrade and bool(left) and all(member.classic is not None for member in left)

    def downgrade(
        self,
        group: ConsumerGroup,
        gone: Collection[str],
        groups: dict[str, Group],
        response: R | None,
        *,
        replacement: ConsumerMember | None = None,
    ) -> CoordinatorResult[R]:
        """Replaces the group in `groups` by a classic group of its classic members, except the ids in `gone`.

        Returns the records of this change and `response`. `groups` has changed when this method returns; the records
        are replayed only when the log is loaded again. The classic group then rebalances, unless `replacement` is
        given. `replacement` is a classic member that takes over the assignment of the member in `gone`, so that no
        assignment changes.
        """
        logger.info("Group %s is downgraded from consumer to classic.", group.group_id)
        topics = self._settings.image().topics
        members = [*group.members.values(), *([replacement] if replacement is not None else [])]
        classic = ClassicGroup(group.group_id, self._context.clock.wall_ms(), GroupState.STABLE)
        classic.generation_id = group.group_epoch
        for member in members:
            if member.member_id in gone or member.classic is None:
                continue
            preferred_metadata = member.classic.protocols[0][1]
            version = decode_subscription(preferred_metadata, topics).version
            # A replacement has no target yet.
            target = group.target.get(member.member_id, partitions_of(member.assigned))
            classic.add(
                ClassicMember(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.classic.session_timeout_ms,
                    "consumer",
                    list(member.classic.protocols),
                    encode_assignment(target, version, topics),
                )
            )
        classic.protocol_name = classic.select_protocol()
        classic.compute_subscribed_topics()
        groups[group.group_id] = classic
        assignments = {member.member_id: member.assignment for member in classic.members.values()}
        records = [*group_tombstones(group), group_metadata_record(classic, assignments)]
        for classic_member in classic.members.values():
            self._rebalance.reschedule_heartbeat(classic, classic_member)
        if replacement is None:
            self._rebalance.prepare(classic, "downgraded from a consumer group")
        return CoordinatorResult(records, response, state_change=StateChange.ALREADY_APPLIED)
