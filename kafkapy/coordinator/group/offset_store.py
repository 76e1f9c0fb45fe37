"""The committed offsets of all groups that belong to one partition of `__consumer_offsets`.

A committed offset becomes visible to readers when the high watermark has passed its record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from kafkapy.coordinator.group.committed_offset import CommittedOffset

# (topic, partition) -> its newest commit
GroupOffsets = dict[tuple[str, int], CommittedOffset]
_OffsetKey = tuple[str, str, int]


class OffsetStore:
    """The committed offsets of all groups of one partition of `__consumer_offsets`. Only the thread that owns it may
    use it, except `committed`.

    An entry whose record is above the high watermark refers to the older entry as `previous`, so that a reader never
    sees a commit that a new leader may not have. A deletion is stored as an entry until its record is committed.
    Offsets that were committed in an open transaction are in `_pending` until the transaction ends.
    """

    def __init__(self, committed_offset: Callable[[], int]) -> None:
        self._committed_offset = committed_offset
        self._groups: dict[str, GroupOffsets] = {}
        self._tombstones: deque[tuple[_OffsetKey, CommittedOffset]] = deque()
        self._pending: dict[int, dict[_OffsetKey, CommittedOffset]] = {}

    # -- replay

    def put(self, group_id: str, topic: str, partition: int, entry: CommittedOffset) -> None:
        """Stores a commit, or a deletion if `entry.is_deleted` is True. While the record of `entry` is above the high
        watermark, readers get the entry that was stored before."""
        high_watermark = self._committed_offset()
        offsets = self._groups.setdefault(group_id, {})
        current = offsets.get((topic, partition))
        if current is not None:
            assert current.log_offset < entry.log_offset, (
                f"commit of {group_id} for {topic}-{partition} at {entry.log_offset} after {current.log_offset}"
            )
            if current.log_offset < high_watermark:
                current.previous = None
            if entry.log_offset >= high_watermark:
                entry.previous = current
        offsets[(topic, partition)] = entry
        if entry.is_deleted:
            self._tombstones.append(((group_id, topic, partition), entry))
        self._purge(high_watermark)

    def delete(self, group_id: str, topic: str, partition: int, log_offset: int) -> None:
        if (topic, partition) in self._groups.get(group_id, {}):
            self.put(group_id, topic, partition, CommittedOffset(-1, log_offset=log_offset, is_deleted=True))
        for pending in self._pending.values():
            pending.pop((group_id, topic, partition), None)

    def put_pending(self, producer_id: int, group_id: str, topic: str, partition: int, entry: CommittedOffset) -> None:
        self._pending.setdefault(producer_id, {})[(group_id, topic, partition)] = entry

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Applies the marker of the producer's transaction.

        If `committed`, each pending offset takes effect, unless a later commit outside the transaction has replaced it;
        otherwise the pending offsets are dropped.
        """
        pending = self._pending.pop(producer_id, {})
        if not committed:
            return
        for (group_id, topic, partition), entry in pending.items():
            current = self._groups.get(group_id, {}).get((topic, partition))
            if current is None or current.log_offset < entry.log_offset:
                self.put(group_id, topic, partition, entry)

    # -- reads

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Returns the committed offset as of the high watermark, or None if there is none."""
        entry = self._groups.get(group_id, {}).get((topic, partition))
        return None if entry is None else self._visible(entry, self._committed_offset())

    def committed(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yields (topic, partition, entry) of each offset that was committed as of the high watermark. Any thread may
        call it, because it reads a copy."""
        high_watermark = self._committed_offset()
        for (topic, partition), entry in self._groups.get(group_id, {}).copy().items():
            visible = self._visible(entry, high_watermark)
            if visible is not None:
                yield topic, partition, visible

    def newest(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yields (topic, partition, entry) of each offset, including offsets above the high watermark, except deleted
        offsets."""
        for (topic, partition), entry in list(self._groups.get(group_id, {}).items()):
            if not entry.is_deleted:
                yield topic, partition, entry

    def partitions(self, group_id: str) -> set[tuple[str, int]]:
        """Returns the (topic, partition) of each offset of the group, including offsets that are pending in a
        transaction."""
        known = {(topic, partition) for topic, partition, _ in self.newest(group_id)}
        return known | self.pending_partitions(group_id)

    def pending_partitions(self, group_id: str) -> set[tuple[str, int]]:
        return {
            (topic, partition)
            for pending in self._pending.values()
            for pending_group, topic, partition in pending
            if pending_group == group_id
        }

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any((group_id, topic, partition) in pending for pending in self._pending.values())

    def group_ids(self) -> list[str]:
        """Returns the ids of the groups that have offsets, including offsets that are pending in a transaction."""
        pending = (group_id for offsets in self._pending.values() for group_id, _, _ in offsets)
        return list(dict.fromkeys([*self._groups, *pending]))

    @staticmethod
    def _visible(entry: CommittedOffset, high_watermark: int) -> CommittedOffset | None:
        found: CommittedOffset | None = entry
        while found is not None and found.log_offset >= high_watermark:
            found = found.previous
        return None if found is None or found.is_deleted else found

    def _purge(self, high_watermark: int) -> None:
        """Removes the entries of offsets whose tombstones are below `high_watermark`, and therefore committed."""
        while self._tombstones and self._tombstones[0][1].log_offset < high_watermark:
            (group_id, topic, partition), entry = self._tombstones.popleft()
            offsets = self._groups.get(group_id)
            if offsets is not None and offsets.get((topic, partition)) is entry:
                del offsets[(topic, partition)]
                if not offsets:
                    del self._groups[group_id]
