"""The state of one share partition in the memory of its coordinator, and its records in `__share_group_state`."""

from __future__ import annotations

from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.coordinator.share.state_batches import combine_batches
from kafkapy.protocol.coordinator_record import encode_coordinator
from kafkapy.protocol.messages.coordinator_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from kafkapy.replica.share.persister import (
    NO_LEADER_EPOCH,
    UNINITIALIZED_START_OFFSET,
    UNKNOWN_COMPLETE_COUNT,
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StateWrite,
    batch_entries,
    batches_from,
)

SNAPSHOT_KEY, UPDATE_KEY = 0, 1
# Batches are combined when their number exceeds this one plus twice the number after the last combination.
MOST_UNCOMBINED = 1000


class ShareState:
    """The state of a share partition. It changes only when records are replayed. Only the thread that owns it may use
    it.

    `leader_epoch` is the newest leader epoch with which the state has been read or written. `snapshot_offset` is the
    offset of the newest snapshot record; records of the share partition before it are not needed. The batches of update
    records are stored as they were written. They are combined when they are read, or when there are too many.
    """

    __slots__ = (
        "_batches",
        "_is_combined",
        "_most_uncombined",
        "create_timestamp_ms",
        "delivery_complete_count",
        "leader_epoch",
        "snapshot_epoch",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "update_count",
        "write_timestamp_ms",
    )

    def __init__(self, snapshot: ShareSnapshotValue, offset: int) -> None:
        """Creates the state that the snapshot record at the log offset `offset` contains."""
        self.snapshot_epoch = snapshot.snapshot_epoch
        self.state_epoch = snapshot.state_epoch
        self.leader_epoch = snapshot.leader_epoch
        self.start_offset = snapshot.start_offset
        self.delivery_complete_count = snapshot.delivery_complete_count
        self.create_timestamp_ms = snapshot.create_timestamp
        self.write_timestamp_ms = snapshot.write_timestamp
        self.snapshot_offset = offset
        self.update_count = 0
        self._batches = batches_from(snapshot.state_batches)
        self._is_combined = True
        self._most_uncombined = 2 * len(self._batches) + MOST_UNCOMBINED

    def update(self, update: ShareUpdateValue) -> None:
        """Adds the changes of an update record, which follows the newest snapshot, to the state."""
        if update.start_offset != UNINITIALIZED_START_OFFSET:
            self.start_offset = update.start_offset
        if update.leader_epoch != NO_LEADER_EPOCH:
            self.leader_epoch = update.leader_epoch
        self.delivery_complete_count = update.delivery_complete_count
        self._batches += batches_from(update.state_batches)
        self._is_combined = False
        self.update_count += 1
        if len(self._batches) > self._most_uncombined:
            self._most_uncombined = 2 * len(self.batches) + MOST_UNCOMBINED

    @property
    def batches(self) -> list[StateBatch]:
        """The delivery states of the records from the start offset on: disjoint batches in the order of their
        offsets."""
        if not self._is_combined:
            self._batches = combine_batches(self._batches, self.start_offset)
            self._is_combined = True
        return self._batches

    @property
    def summary(self) -> StateSummary:
        return StateSummary(self.state_epoch, self.leader_epoch, self.start_offset, self.delivery_complete_count)

    @property
    def is_cold(self) -> bool:
        """True if the newest snapshot record was written without a change of the state, to replace an old one
        (`cold_record`)."""
        return self.create_timestamp_ms != self.write_timestamp_ms

    # -- records

    def initialized_record(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, wall_ms: int
    ) -> CoordinatorRecord:
        """Returns a snapshot record that replaces this state by one without batches, with this state epoch and start
        offset."""
        return initial_record(key, state_epoch, start_offset, wall_ms, snapshot_epoch=self.snapshot_epoch + 1)

    def update_record(self, key: SharePartitionKey, change: StateWrite, leader_epoch: int) -> CoordinatorRecord:
        value = ShareUpdateValue(
            snapshot_epoch=self.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=change.start_offset,
            delivery_complete_count=change.delivery_complete_count,
            state_batches=batch_entries(ShareUpdateValue, combine_batches(change.batches, change.start_offset)),
        )
        return CoordinatorRecord(encode_coordinator(_update_key(key)), encode_coordinator(value, 0))

    def snapshot_record(
        self, key: SharePartitionKey, change: StateWrite, leader_epoch: int, wall_ms: int
    ) -> CoordinatorRecord:
        """Returns a snapshot record of this state after `change`, with the leader epoch `leader_epoch`."""
        unchanged = change.start_offset == UNINITIALIZED_START_OFFSET
        start_offset = self.start_offset if unchanged else change.start_offset
        value = ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch + 1,
            state_epoch=self.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=change.delivery_complete_count,
            create_timestamp=wall_ms,
            write_timestamp=wall_ms,
            state_batches=batch_entries(
                ShareSnapshotValue, combine_batches([*self.batches, *change.batches], start_offset)
            ),
        )
        return CoordinatorRecord(encode_coordinator(_snapshot_key(key)), encode_coordinator(value, 0))

    def cold_record(self, key: SharePartitionKey, wall_ms: int) -> CoordinatorRecord:
        """Returns a snapshot record of this state as it is; after it has been written, older records are not needed."""
        value = ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch + 1,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=self.create_timestamp_ms,
            write_timestamp=wall_ms,
            state_batches=batch_entries(ShareSnapshotValue, self.batches),
        )
        return CoordinatorRecord(encode_coordinator(_snapshot_key(key)), encode_coordinator(value, 0))


def initial_record(
    key: SharePartitionKey, state_epoch: int, start_offset: int, wall_ms: int, snapshot_epoch: int = 0
) -> CoordinatorRecord:
    """Returns the snapshot record of a state without batches.

    `start_offset` is -1 if the group's reset policy has yet to determine it. `snapshot_epoch` counts the snapshots of
    the share partition.
    """
    is_unresolved = start_offset == UNINITIALIZED_START_OFFSET
    value = ShareSnapshotValue(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=0,
        start_offset=start_offset,
        delivery_complete_count=UNKNOWN_COMPLETE_COUNT if is_unresolved else 0,
        create_timestamp=wall_ms,
        write_timestamp=wall_ms,
    )
    return CoordinatorRecord(encode_coordinator(_snapshot_key(key)), encode_coordinator(value, 0))


def state_tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(_snapshot_key(key)), None)


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def _update_key(key: SharePartitionKey) -> ShareUpdateKey:
    return ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
