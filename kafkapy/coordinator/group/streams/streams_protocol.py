"""The handlers of streams groups in a shard: heartbeats, replay, timers and deletion."""

from __future__ import annotations

from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.group import Group
from kafkapy.coordinator.group.no_classic_members import NoClassicMembers
from kafkapy.coordinator.group.record_keys import group_id_of
from kafkapy.coordinator.group.streams.streams_group import StreamsGroup
from kafkapy.coordinator.group.streams.streams_membership import StreamsMembership
from kafkapy.coordinator.group.streams.streams_records import group_tombstones, replay_into
from kafkapy.coordinator.group.streams.streams_settings import StreamsGroupSettings
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.coordinator.shard import ShardContext


class StreamsProtocol(NoClassicMembers):
    """The handler of all requests, records and timers of streams groups. Only the thread that owns it may use it.

    `groups` belongs to the shard, the state of one partition of `__consumer_offsets`.
    """

    def __init__(self, context: ShardContext, settings: ConsumerGroupSettings, groups: dict[str, Group]) -> None:
        self._groups = groups
        self.membership = StreamsMembership(context, StreamsGroupSettings(settings), groups)

    def replay(self, kind: int, key: bytes, value: bytes | None) -> None:
        """Applies one record of a streams group. The tombstone of the group epoch removes the group."""
        group_id = group_id_of(key)
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup):
            if value is None:
                return
            group = self._groups[group_id] = StreamsGroup(group_id)
        if replay_into(group, kind, key, value):
            del self._groups[group_id]

    def on_loaded(self, group: StreamsGroup) -> None:
        self.membership.start_timers(group)

    def tombstones(self, group: StreamsGroup) -> list[CoordinatorRecord]:
        self.membership.cancel_delay(group.group_id)
        return group_tombstones(group)
