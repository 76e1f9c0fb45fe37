"""A segment that the log cleaner writes, and the replacement of the segments from which it was made.

The suffix of the segment's files says what the broker does with them at its next start:

    *.cleaned   being written: the start deletes the file
    *.swap      complete and durable: the start deletes the segments with the same offsets and removes the suffix
    (none)      part of the log: the start keeps the file

There is one exception: a `.swap` file does not count as complete while a `.cleaned` file with the same or a lower base
offset exists. The start then deletes both files. The replaced files are deleted after the names of the new files are
durable.
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
    """A LogSegment whose files end in `.cleaned`. Owned by the cleaner's thread until it becomes a segment of the
    log."""

    __slots__ = ("end_offset",)

    end_offset: int  # the offset after the last batch, once finished

    def path(self, suffix: str) -> str:
        return super().path(suffix) + CLEANED_SUFFIX

    def finish(self, modified_ns: int) -> None:
        """Makes the contents durable and sets the modification time to `modified_ns` (ns since 1970).

        Raises OSError.
        """
        self.become_inactive()
        self.end_offset = self.next_offset()
        self.flush(with_indexes=True)
        self.close(trim=False)
        for suffix in SEGMENT_SUFFIXES:
            if os.path.exists(self.path(suffix)):
                os.utime(self.path(suffix), ns=(modified_ns, modified_ns))


def remove_cleaned_files(directory: str, filesystem: "Filesystem") -> None:
    """Deletes all `.cleaned` files that an interrupted pass of the log cleaner has left. Raises OSError.

    A `.cleaned` file that remained would make the `.swap` files of a later pass count as incomplete.
    """
    for name in os.listdir(directory):
        if name.endswith(CLEANED_SUFFIX):
            filesystem.unlink(os.path.join(directory, name))


def swap_in(
    log: "Log", cleaned: CleanedSegment, replaced: Sequence[LogSegment], filesystem: "Filesystem", truncations: int
) -> list[str]:
    """Replaces the segments `replaced` of the log with the segment `cleaned`. Only the thread that owns the log may
    call it.

    `truncations` is the value of `log.truncations` when the pass of the log cleaner began. Returns the new paths of the
    replaced files, which now end in `.deleted`; the caller deletes them after syncing the directory. Raises OSError.
    Raises SegmentsChanged and changes nothing if the log was truncated or no longer contains all of the segments.
    """
    segments = log.segments
    active = segments.active
    if log.truncations != truncations:
        raise SegmentsChanged(f"{log.topic_partition} was truncated while it was cleaned")
    if log.is_deleted or any(segment is active or segment not in segments for segment in replaced):
        raise SegmentsChanged(f"segments of {log.topic_partition} were deleted while they were cleaned")
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
    """Raised if segments were truncated, expired or deleted during a pass of the log cleaner. The result of the pass is
    then discarded.
    """
