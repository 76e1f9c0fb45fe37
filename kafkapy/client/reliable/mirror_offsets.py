"""The offsets of mirrored records: runs of records with both their offsets, and the translation of offsets. This module
does no I/O.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

# The runs that are kept for each partition; an earlier offset is translated to the first one of them.
MOST_RUNS = 10_000
# The header with the names of the clusters that a record has come through, separated by commas.
PATH = "kafkapy.mirror.path"
_FORM_VERSION = 1


class Run(NamedTuple):
    """Copied records whose offsets are consecutive in the source and in the target.

    The run has `length` records; `source` and `target` are the offsets of its first record in the two partitions.
    """

    source: int
    target: int
    length: int


def runs_of(offsets: Iterable[tuple[int, int]]) -> Iterator[Run]:
    """Yields the runs of consecutive offsets in `offsets`.

    These are pairs of a record's source offset and target offset, and both offsets ascend.
    """
    run: Run | None = None
    for source, target in offsets:
        if run is not None and (source, target) == (run.source + run.length, run.target + run.length):
            run = run._replace(length=run.length + 1)
        else:
            if run is not None:
                yield run
            run = Run(source, target, 1)
    if run is not None:
        yield run


class OffsetMap:
    """The latest runs of copied records of one partition.

    If they become more than twice MOST_RUNS, all but the latest MOST_RUNS are dropped.
    """

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def add(self, run: Run) -> None:
        """Adds a run after all others; does nothing if the map has the run's first record already.

        If only the run's source offsets go back, the source partition was truncated there, or its topic was created
        again. The copies of the former records at and after the run are dropped from the map.
        """
        last = self._runs[-1] if self._runs else Run(0, 0, 0)
        if run.source < last.source + last.length:
            if run.target < last.target + last.length:
                return
            self._cut(run.source)
        self._runs.append(run)
        if len(self._runs) > 2 * MOST_RUNS:
            del self._runs[:-MOST_RUNS]

    def _cut(self, source: int) -> None:
        del self._runs[bisect_left(self._runs, source, key=lambda run: run.source) :]
        if self._runs:
            last = self._runs[-1]
            self._runs[-1] = last._replace(length=min(last.length, source - last.source))

    def translate(self, source: int) -> int | None:
        """Returns the target offset of the first copied record at or after a source offset; None if the map is empty.

        For a source offset after the last copied record, returns the offset after the last copy. For a source offset
        before the first run of the map, returns the offset of the run's first copy, so that a group repeats records and
        misses none.
        """
        if not self._runs:
            return None
        index = bisect_right(self._runs, source, key=lambda run: run.source) - 1
        if index < 0:
            return self._runs[0].target
        run = self._runs[index]
        if source < run.source + run.length:
            return run.target + source - run.source
        return self._runs[index + 1].target if index + 1 < len(self._runs) else run.target + run.length


def pack_position(next_offset: int, topic_id: str = "") -> bytes:
    """Encodes the position of a source partition for the topic that stores it.

    `next_offset` is the offset of the next source record to copy, `topic_id` the text of the source topic's id, or
    empty if the id is unknown.
    """
    return f"{next_offset} {topic_id}".rstrip().encode()


def unpack_position(content: bytes) -> tuple[int, str]:
    """Returns the offset and the text of the topic's id from a stored position. Raises ValueError for other bytes."""
    offset, _, topic_id = content.decode().partition(" ")
    return int(offset), topic_id


def position_key(partition: TopicPartition) -> bytes:
    """Returns the key under which the position of a source partition is stored: its topic and number."""
    return f"{partition.partition}:{partition.topic}".encode()


def parse_position_key(key: bytes | None) -> TopicPartition:
    """Returns the partition that the key of a stored position names. Raises ValueError if `key` is not such a key."""
    number, colon, topic = (key or b"").decode().partition(":")
    if not colon or not topic:
        raise ValueError(f"{key!r} is not the key of a mirror's position")
    return TopicPartition(topic, int(number))


def pack_runs(runs: Iterable[Run]) -> bytes:
    """Encodes the runs of one partition that one transaction has copied, as they are stored."""
    import msgpack

    packed: bytes = msgpack.packb([_FORM_VERSION, *(number for run in runs for number in run)])
    return packed


def unpack_runs(content: bytes | None) -> list[Run]:
    """Decodes the stored runs of one partition and one transaction. Raises ValueError if the bytes are not runs."""
    import msgpack

    try:
        fields: Any = msgpack.unpackb(content or b"")
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise ValueError(f"The bytes are not the runs of a mirror: {error}") from error
    is_list = isinstance(fields, list) and all(isinstance(each, int) for each in fields)
    if not is_list or len(fields) % 3 != 1 or fields[0] != _FORM_VERSION:
        raise ValueError("The bytes are not the runs of a mirror")
    return [Run(*fields[at : at + 3]) for at in range(1, len(fields), 3)]
