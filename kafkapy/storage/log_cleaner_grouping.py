"""Groups the segments that the log cleaner merges into one: as many neighbours as fit. This module has no state and
does no I/O.

With a limit of 1 GB: 0.4 0.4 0.3 0.7 0.3 1 -> [0.4 0.4] [0.3 0.7] [0.3] [1]
"""

from collections.abc import Sequence

from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.rebuilt_indexes import LARGEST_RELATIVE_OFFSET


class SegmentSizes(NamedTuple):
    """The sizes of a segment's files in bytes."""

    base_offset: int
    size: int
    offset_index_size: int
    time_index_size: int


def group_segments(
    segments: Sequence[SegmentSizes], max_size: int, max_index_size: int, end_offset: int
) -> list[list[SegmentSizes]]:
    """Divides the segments, in order, into groups; `end_offset` is above the last offset of the last segment.

    The `.log` files of a group have at most `max_size` bytes together. Its offset indexes have at most `max_index_size`
    bytes together, and so do its time indexes. All its offsets are less than 2^31 above its base offset. A segment that
    exceeds a limit by itself forms a group of its own.
    """
    groups: list[list[SegmentSizes]] = []
    log, offset_index, time_index = 0, 0, 0
    for number, segment in enumerate(segments):
        log += segment.size
        offset_index += segment.offset_index_size
        time_index += segment.time_index_size
        last_offset = (segments[number + 1].base_offset if number + 1 < len(segments) else end_offset) - 1
        fits = (
            bool(groups)
            and log <= max_size
            and max(offset_index, time_index) <= max_index_size
            and (segment.size == 0 or last_offset - groups[-1][0].base_offset <= LARGEST_RELATIVE_OFFSET)
        )
        if fits:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            log, offset_index, time_index = segment.size, segment.offset_index_size, segment.time_index_size
    return groups
