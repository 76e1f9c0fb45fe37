"""The deliveries of share groups that their coordinators have stored: states and delivery counts of ranges of offsets.

The protocol does not report these to clients, so they are read from the topic `__share_group_state` (KIP-932). Records
that a member has acquired and not finished are in the memory of the leader only; the topic has their last stored state.
"""

from __future__ import annotations

import time

from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.message_query import MessageQuery, ranges_of
from kafkapy.console.record_filter import Filter, Record
from kafkapy.console.record_search import RecordSearch
from kafkapy.errors import ProtocolViolation
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.coordinator_record import Coordinator, decode_coordinator_key, decode_coordinator_value
from kafkapy.protocol.messages.coordinator_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from kafkapy.protocol.record_frame import UnknownRecordError

STATE_TOPIC = "__share_group_state"
MOST_STATES = 20_000
STATES_TIME_S = 5.0
# The stored states of a range (KIP-932).
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4

# First and last offset, state, delivery count.
Range = tuple[int, int, int, int]
# The id of a topic and a partition.
Place = tuple[object, int]


class Deliveries(NamedTuple):
    """Numbers of records of a share partition, by the delivery state that is stored for them. Records before the
    partition's start offset are not counted.

    `again` counts the records that will be delivered again. `acknowledged` counts the records that were acknowledged
    although an earlier record was not. `archived` counts the records whose delivery was given up. `most_deliveries` is
    the largest delivery count of a record that is to be delivered again.
    """

    again: int
    acknowledged: int
    archived: int
    most_deliveries: int


class _Partition:
    def __init__(self) -> None:
        self.start = 0
        self.ranges: list[Range] = []

    def apply(self, start: int, batches: list[Range], *, is_snapshot: bool) -> None:
        if is_snapshot:
            self.ranges = []
        if start >= 0:
            self.start = start
        for first, last, state, count in batches:
            self.ranges = [part for each in self.ranges for part in _without(each, first, last)]
            self.ranges.append((first, last, state, count))
        self.ranges = [
            (max(first, self.start), last, state, count)
            for first, last, state, count in self.ranges
            if last >= self.start
        ]

    def deliveries(self) -> Deliveries:
        counts = dict.fromkeys((AVAILABLE, ACKNOWLEDGED, ARCHIVED), 0)
        most = 0
        for first, last, state, count in self.ranges:
            if state in counts and (state != AVAILABLE or count):
                counts[state] += last - first + 1
            if state == AVAILABLE:
                most = max(most, count)
        return Deliveries(counts[AVAILABLE], counts[ACKNOWLEDGED], counts[ARCHIVED], most)


def _without(each: Range, first: int, last: int) -> list[Range]:
    """Returns what remains of the range `each` without the offsets from `first` to `last`: at most two ranges."""
    start, end, state, count = each
    found = [(start, min(end, first - 1), state, count), (max(start, last + 1), end, state, count)]
    return [part for part in found if part[0] <= part[1]] if first <= end and start <= last else [each]


def deliveries_of(view: ClusterView, group: str) -> dict[Place, Deliveries]:
    """Returns the stored deliveries of a group by topic id and partition.

    Reads at most MOST_STATES records of the group. Raises ApiError or Problem if the user may not read the topic.
    """
    query = MessageQuery(
        "oldest", "", None, MOST_STATES, (Filter("key", "contains", group),), "auto", "auto", committed_only=False
    )
    numbers = [each.partition for each in view.topic(STATE_TOPIC).partitions]
    search = RecordSearch(view.properties, query, ranges_of(query, view, STATE_TOPIC, numbers))
    end_s = time.monotonic() + STATES_TIME_S
    found: dict[Place, _Partition] = {}
    for each in search.run():
        if time.monotonic() > end_s:
            search.stop()
        if isinstance(each, Record):
            _apply(each, group, found)
    return {place: partition.deliveries() for place, partition in found.items()}


def _apply(record: Record, group: str, found: dict[Place, _Partition]) -> None:
    try:
        key = decode_coordinator_key(record.key, Coordinator.SHARE)
        if not isinstance(key, ShareSnapshotKey | ShareUpdateKey) or key.group_id != group:
            return
        place = (key.topic_id, key.partition)
        if record.value is None:
            found.pop(place, None)
            return
        value = decode_coordinator_value(type(key).API_KEY, record.value, Coordinator.SHARE)
    except (ProtocolViolation, UnknownRecordError, ValueError):
        return  # a record of a later version, which this page cannot show
    assert isinstance(value, ShareSnapshotValue | ShareUpdateValue)
    batches = [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in value.state_batches
    ]
    partition = found.setdefault(place, _Partition())
    partition.apply(value.start_offset, batches, is_snapshot=isinstance(value, ShareSnapshotValue))
