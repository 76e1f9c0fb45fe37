"""The segments of a log in the order of their base offsets; the last one is the active segment."""

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafkapy._core.broker_state.log_state import SegmentsState
from kafkapy.storage.log_segment import LogSegment


class LogSegments(SegmentsState):
    """The segments of one log in order. Invariants: the list is not empty once the log is in use; base offsets rise
    strictly.

    Only the thread that owns the log changes the object; `between` returns a new list, and any thread may call it.
    """

    __slots__ = ("_base_offsets", "_segments")

    def __init__(self, segments: Sequence[LogSegment] = ()) -> None:
        self._segments = sorted(segments, key=base_offset_of)
        self._base_offsets = [segment.base_offset for segment in self._segments]
        self._note_segments()

    if TYPE_CHECKING:

        @property
        def active(self) -> LogSegment: ...

    def _note_segments(self) -> None:
        self._set_segments(self._segments)

    @property
    def first(self) -> LogSegment:
        """The oldest segment."""
        return self._segments[0]

    @property
    def base_offsets(self) -> Sequence[int]:
        """The base offsets, ascending."""
        return self._base_offsets

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> LogSegment:
        return self._segments[index]

    def __contains__(self, segment: object) -> bool:
        return segment in self._segments

    @property
    def size(self) -> int:
        """The size of all batches in bytes."""
        return sum(segment.size for segment in self._segments)

    def add(self, segment: LogSegment) -> None:
        """Inserts a segment; no other segment may have its base offset."""
        assert segment.base_offset not in self._base_offsets, segment
        insort(self._segments, segment, key=base_offset_of)
        insort(self._base_offsets, segment.base_offset)
        self._note_segments()

    def remove(self, segment: LogSegment) -> None:
        """Removes a segment from the list, but not its files. Raises ValueError if it is not in the list."""
        self._segments.remove(segment)
        self._base_offsets.remove(segment.base_offset)
        self._note_segments()

    def replace_all(self, segment: LogSegment) -> None:
        """Replaces all segments by one. Other threads always find a segment."""
        self._segments, self._base_offsets = [segment], [segment.base_offset]
        self._note_segments()

    def index_of(self, offset: int) -> int:
        """Returns the index of the last segment whose base offset is at or below `offset`, or -1 if there is none."""
        return bisect_right(self._base_offsets, offset) - 1

    def between(self, start_offset: int, end_offset: int) -> list[LogSegment]:
        """Returns the segments that may contain offsets in [start_offset, end_offset), oldest first."""
        segments = list(self._segments)
        bases = [segment.base_offset for segment in segments]
        first = max(0, bisect_right(bases, start_offset) - 1)
        return [segment for segment in segments[first:] if segment.base_offset < end_offset]

    def from_offset(self, offset: int) -> list[LogSegment]:
        """Returns the segments whose base offset is at or after `offset`."""
        return [segment for segment in self._segments if segment.base_offset >= offset]


def base_offset_of(segment: LogSegment) -> int:
    return segment.base_offset
