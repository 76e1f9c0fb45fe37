"""The memory of a share partition's state: the batches of its updates."""

from __future__ import annotations

from kafkapy.coordinator.share.share_state import MOST_UNCOMBINED, ShareState
from kafkapy.protocol.messages.coordinator_records import ShareSnapshotValue, ShareUpdateValue

ACKNOWLEDGED = 2


def update(*offsets: int) -> ShareUpdateValue:
    batches = [
        ShareUpdateValue.StateBatch(first_offset=each, last_offset=each, delivery_state=ACKNOWLEDGED, delivery_count=1)
        for each in offsets
    ]
    return ShareUpdateValue(snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=batches)


def test_the_batches_of_many_updates_are_combined() -> None:
    state = ShareState(ShareSnapshotValue(start_offset=0), 0)
    for number in range(50):
        state.update(update(*range(number * 100, (number + 1) * 100)))
        assert len(state._batches) <= MOST_UNCOMBINED + 2
    assert [each[:2] for each in state.batches] == [(0, 4999)]
