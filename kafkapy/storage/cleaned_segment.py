"""A segment that the log cleaner writes, and how it takes the place of those that it was made from.

    *.cleaned   being written; a crash drops it
    *.swap      complete and durable; a crash finishes what began: the segments it covers go, the suffix too
    (none)      live

While a `.cleaned` file is there, `.swap` files at or above its base offset are not complete either. The old files are
removed after the names of the new ones are durable.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkapy.storage.log_segment import SEGMENT_SUFFIXES, LogSegment

if TYPE_CHECKING:
    from kafkapy.storage.filesystem import Filesystem
    from kafkapy.storage.log import Log

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"


class CleanedSegment(LogSegment):
    """A LogSegment whose files end in `.cleaned`. Owned by the cleaner thread until it is swapped in."""

    __slots__ = ("end_offset",)

    end_offset: int  # the offset after the last batch, once finished

    def path(self, suffix: str) -> str:
        return super().path(suffix) + CLEANED_SUFFIX

    def finish(self, modified_ns: int) -> None:
        """Everything is durable on return, names aside; the files are as old as `modified_ns` (since 1970). OSError."""
        self.become_inactive()
        self.end_offset = self.next_offset()
        self.flush(with_indexes=True)
        self.close(trim=False)
        for suffix in SEGMENT_SUFFIXES:
            if os.path.exists(self.path(suffix)):
                os.utime(self.path(suffix), ns=(modified_ns, modified_ns))


def remove_cleaned_files(directory: str, base_offset: int, filesystem: "Filesystem") -> None:
    """What an interrupted pass of this process left behind at a base offset."""
    for suffix in SEGMENT_SUFFIXES:
        filesystem.unlink(os.path.join(directory, f"{base_offset:020d}{suffix}{CLEANED_SUFFIX}"))


def swap_in(log: "Log", cleaned: CleanedSegment, replaced: Sequence[LogSegment], filesystem: "Filesystem") -> list[str]:
    """Puts a finished segment into the log in the place of `replaced`. The log's owner thread. OSError.

    Returns the renamed old files: to be unlinked once the directory is synced. SegmentsChanged, with nothing done, if
    the log does not have all of them any more.
    """
    segments = log.segments
    active = segments.active
    if log.is_deleted or any(segment is active or segment not in segments for segment in replaced):
        raise SegmentsChanged(f"segments of {log.topic_partition} went while they were cleaned")
    assert cleaned.base_offset == replaced[0].base_offset, (cleaned, replaced)
    first = segments.index_of(cleaned.base_offset)
    assert list(segments)[first : first + len(replaced)] == list(replaced), (list(segments), replaced)
    assert cleaned.end_offset <= segments[first + len(replaced)].base_offset, (cleaned, list(segments))
    base = os.path.join(log.path, f"{cleaned.base_offset:020d}")
    suffixes = [suffix for suffix in SEGMENT_SUFFIXES if os.path.exists(base + suffix + CLEANED_SUFFIX)]
    for suffix in reversed(suffixes):
        filesystem.rename(base + suffix + CLEANED_SUFFIX, base + suffix + SWAP_SUFFIX)
    renamed = []
    for segment in replaced:
        segments.remove(segment)
        renamed += segment.mark_deleted()
    for suffix in suffixes:
        filesystem.rename(base + suffix + SWAP_SUFFIX, base + suffix)
    segments.add(
        LogSegment(
            log.path,
            cleaned.base_offset,
            log.config,
            filesystem,
            size=cleaned.size,
            created_ms=replaced[0].created_ms,
        )
    )
    log.producers.keep_snapshots_of(segments.base_offsets)
    log.producers.delete_strays()
    return renamed


class SegmentsChanged(Exception):
    """The segments that were cleaned are not those of the log any more: truncated, expired or deleted."""
