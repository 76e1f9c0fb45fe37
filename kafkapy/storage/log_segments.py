"""The segments of a log in the order of their base offsets; the last one is the active segment."""

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafkapy._core.broker_state.log_state import SegmentsState
from kafkapy.storage.log_segment import LogSegment


class LogSegments(SegmentsState):
    """Owns the order. Invariants: never empty once the log is published; base offsets rise strictly.

    Changed by the log's owner thread only; `between` gives other threads a list of their own.
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
        return self._segments[0]

    @property
    def base_offsets(self) -> Sequence[int]:
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
        """Bytes of all batches."""
        return sum(segment.size for segment in self._segments)

    def add(self, segment: LogSegment) -> None:
        """Inserts a segment at its place; no other may have its base offset."""
        assert segment.base_offset not in self._base_offsets, segment
        insort(self._segments, segment, key=base_offset_of)
        insort(self._base_offsets, segment.base_offset)
        self._note_segments()

    def remove(self, segment: LogSegment) -> None:
        self._segments.remove(segment)
        self._base_offsets.remove(segment.base_offset)
        self._note_segments()

    def index_of(self, offset: int) -> int:
        """The place of the segment that would hold `offset`; -1 before the first."""
        return bisect_right(self._base_offsets, offset) - 1

    def between(self, start_offset: int, end_offset: int) -> list[LogSegment]:
        """The segments that may hold offsets in [start, end), oldest first."""
        segments = list(self._segments)
        bases = [segment.base_offset for segment in segments]
        first = max(0, bisect_right(bases, start_offset) - 1)
        return [segment for segment in segments[first:] if segment.base_offset < end_offset]

    def from_offset(self, offset: int) -> list[LogSegment]:
        """The segments whose base offset is at or after `offset`."""
        return [segment for segment in self._segments if segment.base_offset >= offset]


def base_offset_of(segment: LogSegment) -> int:
    return segment.base_offset
