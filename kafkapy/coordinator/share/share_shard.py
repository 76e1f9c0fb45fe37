"""The states of the share partitions in one partition of `__share_group_state`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kafkapy.coordinator.record import EMPTY_RESULT, CoordinatorRecord, CoordinatorResult
from kafkapy.coordinator.shard import ShardContext, run_in_parts
from kafkapy.coordinator.share.share_state import (
    SNAPSHOT_KEY,
    UPDATE_KEY,
    ShareState,
    initial_record,
    state_tombstone,
)
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.protocol.coordinator_record import (
    Coordinator,
    decode_coordinator_key,
    decode_coordinator_value,
)
from kafkapy.replica.share.persister import (
    NO_LEADER_EPOCH,
    UNINITIALIZED_START_OFFSET,
    UNKNOWN_COMPLETE_COUNT,
    PersistedState,
    SharePartitionKey,
    StateSummary,
    StateWrite,
)

# A share partition whose last snapshot is older gets a new one, so that the log can be pruned.
COLD_SNAPSHOT_INTERVAL_MS = 300_000
# The summary of a share partition that has no state.
NO_SUMMARY = StateSummary(0, 0, UNINITIALIZED_START_OFFSET, UNKNOWN_COMPLETE_COUNT)


class ShareShard:
    """The states of the share partitions that belong to one partition of `__share_group_state`. Only the thread that
    owns it may use it.

    An operation returns a CoordinatorResult or raises ApiError; the states change when `replay` applies the records.
    """

    def __init__(
        self, context: ShardContext, image: Callable[[], MetadataImage], updates_per_snapshot: Callable[[], int]
    ) -> None:
        self._context = context
        self._image = image
        self._updates_per_snapshot = updates_per_snapshot
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.write_count = 0

    # -- the log

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        kind = int.from_bytes(key[:2], "big", signed=True)
        if kind not in (SNAPSHOT_KEY, UPDATE_KEY):
            return
        decoded: Any = decode_coordinator_key(key, Coordinator.SHARE)
        share_partition = SharePartitionKey(decoded.group_id, decoded.topic_id, decoded.partition)
        if value is None:
            if kind == SNAPSHOT_KEY:
                self.states.pop(share_partition, None)
            return
        record: Any = decode_coordinator_value(kind, value, Coordinator.SHARE)
        if kind == SNAPSHOT_KEY:
            self.states[share_partition] = ShareState(record, offset)
        elif share_partition in self.states:
            self.states[share_partition].update(record)

    def replay_end_of_transaction(self, offset: int, producer_id: int, committed: bool) -> None:
        """Does nothing: no record of `__share_group_state` is written within a transaction."""

    def on_loaded(self) -> None:
        """Does nothing after the log has been loaded: the states have no timers."""

    def on_unloaded(self) -> None:
        """Does nothing when this broker stops leading the partition: no request waits for a response."""

    # -- operations

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> CoordinatorResult[Error]:
        """Creates the state of a share partition, without batches; an existing state is replaced.

        Raises ApiError FENCED_STATE_EPOCH if the existing state has a higher state epoch.
        """
        _check_partition(key)
        state = self.states.get(key)
        if state is not None and -1 != state_epoch < state.state_epoch:
            raise ApiError(Error.FENCED_STATE_EPOCH)
        self._check_topic(key)
        wall_ms = self._context.clock.wall_ms()
        if state is None:
            record = initial_record(key, state_epoch, start_offset, wall_ms)
        else:
            record = state.initialized_record(key, state_epoch, start_offset, wall_ms)
        return CoordinatorResult([record], Error.NONE)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> CoordinatorResult[PersistedState]:
        """Returns the state of the share partition `key`. If `leader_epoch` is newer than the leader epoch in the
        state, also writes a record that stores `leader_epoch` in the state.

        Raises ApiError INVALID_REQUEST if there is no state, and FENCED_LEADER_EPOCH if the state has a newer epoch.
        """
        _check_partition(key)
        state = self._state(key, "Read")
        if state.leader_epoch > leader_epoch:
            raise ApiError(Error.FENCED_LEADER_EPOCH)
        self._check_topic(key)
        response = PersistedState(state.state_epoch, state.start_offset, state.batches)
        if leader_epoch in (NO_LEADER_EPOCH, state.leader_epoch):
            return CoordinatorResult(response=response)
        change = StateWrite(
            state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, batches=()
        )
        return CoordinatorResult([self._change_record(key, state, change, leader_epoch)], response)

    def write(self, key: SharePartitionKey, change: StateWrite) -> CoordinatorResult[Error]:
        """Writes the record that changes the state of the share partition `key`.

        Raises ApiError INVALID_REQUEST if there is no state, and FENCED_LEADER_EPOCH or FENCED_STATE_EPOCH if the state
        has a newer epoch than the change.
        """
        self.write_count += 1
        _check_partition(key)
        state = self._state(key, "Write")
        if -1 != change.leader_epoch < state.leader_epoch:
            raise ApiError(Error.FENCED_LEADER_EPOCH)
        if -1 != change.state_epoch < state.state_epoch:
            raise ApiError(Error.FENCED_STATE_EPOCH)
        self._check_topic(key)
        return CoordinatorResult([self._change_record(key, state, change, state.leader_epoch)], Error.NONE)

    def delete(self, key: SharePartitionKey) -> CoordinatorResult[Error]:
        """Deletes the state of the share partition `key`, if there is one."""
        _check_partition(key)
        self._check_topic(key)
        records = [state_tombstone(key)] if key in self.states else []
        return CoordinatorResult(records, Error.NONE)

    def summarize(self, key: SharePartitionKey) -> CoordinatorResult[StateSummary]:
        """Returns the state of the share partition `key` without its batches: its epochs and start offset. Returns
        NO_SUMMARY if there is no state."""
        _check_partition(key)
        self._check_topic(key)
        state = self.states.get(key)
        return CoordinatorResult(response=NO_SUMMARY if state is None else state.summary)

    def forget_topics(self, topic_ids: Collection[bytes]) -> CoordinatorResult[None]:
        """Deletes the states of the share partitions of the deleted topics `topic_ids`."""
        records = [state_tombstone(key) for key in self.states if key.topic_id in topic_ids]
        return run_in_parts(self._context, records)

    def snapshot_cold(self) -> CoordinatorResult[None]:
        """Writes a snapshot of each state whose newest snapshot is at least COLD_SNAPSHOT_INTERVAL_MS old, so that
        older records can be deleted.

        As in Apache Kafka, writes nothing if this method has written the newest snapshot of every state: the states
        have not changed since then, and the older records can be deleted already.
        """
        if all(state.is_cold for state in self.states.values()):
            return EMPTY_RESULT
        wall_ms = self._context.clock.wall_ms()
        records = [
            state.cold_record(key, wall_ms)
            for key, state in self.states.items()
            if wall_ms - state.write_timestamp_ms >= COLD_SNAPSHOT_INTERVAL_MS
        ]
        return run_in_parts(self._context, records)

    def redundant_offset(self) -> int | None:
        """Returns the smallest offset of the newest snapshots of all states, or None if there is no state. Records
        before this offset may be deleted."""
        return min((state.snapshot_offset for state in self.states.values()), default=None)

    def _change_record(
        self, key: SharePartitionKey, state: ShareState, change: StateWrite, leader_epoch: int
    ) -> CoordinatorRecord:
        if state.update_count >= self._updates_per_snapshot():
            return state.snapshot_record(key, change, leader_epoch, self._context.clock.wall_ms())
        return state.update_record(key, change, leader_epoch)

    def _state(self, key: SharePartitionKey, verb: str) -> ShareState:
        state = self.states.get(key)
        if state is None:
            raise ApiError(Error.INVALID_REQUEST, f"{verb} operation on uninitialized share partition not allowed.")
        return state

    def _check_topic(self, key: SharePartitionKey) -> None:
        topic = self._image().topics.by_id.get(key.topic_id)
        if topic is None or key.partition not in topic.partitions:
            raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION)


def _check_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise ApiError(Error.INVALID_REQUEST, "The partition id cannot be a negative number.")
