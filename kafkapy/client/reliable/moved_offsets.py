"""The offsets of the dead letters in one partition that a redrive has moved back to their topics. This module does no
I/O.

They are stored as the group's committed offset and its metadata. The committed offset is the first one that was not
moved. The metadata is a text that lists the ranges of moved offsets above it: for each range its distance from the end
of the previous one, and its length, in base 36.
"""

from __future__ import annotations

from bisect import bisect_right

# The default of `offset.metadata.max.bytes`.
MOST_METADATA_BYTES = 4096
_MOVED_MARK = "moved:"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class MovedOffsets:
    """The offsets of one partition whose records were moved: all offsets below `first`, and some ranges [begin, end)
    above it.
    """

    def __init__(self, first: int, text: str = "") -> None:
        """Reads the moved offsets from the offset `first` and the metadata `text`, which were committed together.

        If another program has written the text, no offsets above `first` count as moved. Raises ValueError for a
        damaged text.
        """
        self.first = first
        self._ranges: list[tuple[int, int]] = []
        if not text.startswith(_MOVED_MARK):
            return
        at = first
        for part in text[len(_MOVED_MARK) :].split(",") if len(text) > len(_MOVED_MARK) else []:
            gap, _, length = part.partition(":")
            begin = at + int(gap, 36)
            at = begin + int(length, 36)
            if begin >= at or begin < first:
                raise ValueError(f"The ranges of moved offsets cannot be read: {text[:80]}")
            self._ranges.append((begin, at))

    def __contains__(self, offset: int) -> bool:
        if offset < self.first:
            return True
        index = bisect_right(self._ranges, (offset, 1 << 63)) - 1
        return index >= 0 and offset < self._ranges[index][1]

    def add(self, offset: int, previous_end: int | None = None) -> bool:
        """Adds the offset of a moved record; returns True unless `text` would become too long for the metadata.

        In that case returns False without a change. `previous_end` is the offset after the record that was read before
        this one. If that record was moved, the offsets between the two records count as moved too, because they belong
        to transaction markers and compacted records.
        """
        if offset in self:
            return True
        before = (self.first, list(self._ranges))
        begin, end = offset, offset + 1
        if (
            previous_end is not None
            and previous_end <= offset
            and (previous_end == self.first or previous_end - 1 in self)
        ):
            begin = max(previous_end, self.first)
        index = bisect_right(self._ranges, (begin, 1 << 63))
        if index > 0 and self._ranges[index - 1][1] == begin:
            index -= 1
            begin = self._ranges.pop(index)[0]
        if index < len(self._ranges) and self._ranges[index][0] == end:
            end = self._ranges.pop(index)[1]
        self._ranges.insert(index, (begin, end))
        self.skip_to(self.first)
        if len(self.text()) <= MOST_METADATA_BYTES:
            return True
        self.first, self._ranges = before
        return False

    def skip_to(self, first: int) -> None:
        """Counts all offsets below `first` as moved; they no longer exist, or never had a record."""
        self.first = max(self.first, first)
        while self._ranges and self._ranges[0][0] <= self.first:
            self.first = max(self.first, self._ranges.pop(0)[1])

    def text(self) -> str:
        """Returns the metadata to commit with the offset `first`."""
        parts = []
        at = self.first
        for begin, end in self._ranges:
            parts.append(f"{_in_base_36(begin - at)}:{_in_base_36(end - begin)}")
            at = end
        return _MOVED_MARK + ",".join(parts) if parts else ""


def _in_base_36(number: int) -> str:
    text = ""
    while number >= 36:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return _DIGITS[number] + text
