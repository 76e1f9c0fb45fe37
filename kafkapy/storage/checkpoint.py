"""Kafka's text checkpoint files: a version line, a line with the number of entries, one line per entry.

0                                0
2                                1
topic partition offset           epoch start_offset
topic partition offset
(offset checkpoints)             (leader-epoch-checkpoint)
"""

from collections.abc import Collection, Iterable, Mapping
from threading import RLock

from kafkapy.decimal_text import is_integer, is_number
from kafkapy.storage.filesystem import Filesystem, read_small_file
from kafkapy.types import TopicPartition

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"

VERSION = 0


class MalformedCheckpoint(ValueError):
    """Raised for a checkpoint file that does not follow the format. The message names the file and the line."""


def read_entries(path: str, fields: int, *, may_be_empty: bool = False) -> list[list[str]]:
    """Returns the entries of a checkpoint file, each split into `fields` words; [] if the file does not exist.

    If `may_be_empty` is True, an empty file has no entries, as in Kafka; otherwise an empty file is malformed. Raises
    MalformedCheckpoint or OSError.
    """
    try:
        lines = read_small_file(path).decode().split("\n")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise MalformedCheckpoint(f"{path}: {error}") from error
    if lines and not lines[-1]:
        lines.pop()
    if may_be_empty and not lines:
        return []
    if len(lines) < 2 or lines[0] != str(VERSION) or not is_number(lines[1]):
        raise MalformedCheckpoint(f"{path}: no version {VERSION} checkpoint")
    entries = [line.split() for line in lines[2:]]
    if len(entries) != int(lines[1]):
        raise MalformedCheckpoint(f"{path}: {lines[1]} entries announced, {len(entries)} found")
    for number, entry in enumerate(entries):
        if len(entry) != fields or not (is_integer(entry[-1]) and is_integer(entry[-2])):
            raise MalformedCheckpoint(f"{path}: line {number + 3} is not an entry")
    return entries


def format_entries(lines: Iterable[str]) -> bytes:
    """Returns the content of a checkpoint file with one entry per item of `lines`."""
    entries = list(lines)
    return "\n".join([str(VERSION), str(len(entries)), *entries, ""]).encode()


class OffsetCheckpointFile:
    """An offset checkpoint of a log directory, which maps partitions to offsets. Any thread may use it."""

    __slots__ = ("_filesystem", "_lock", "_offsets", "path")

    def __init__(self, path: str, filesystem: Filesystem) -> None:
        self.path = path
        self._filesystem = filesystem
        self._lock = RLock()
        self._offsets: dict[TopicPartition, int] | None = None  # what this object has last written

    def read(self) -> dict[TopicPartition, int]:
        """Returns the offset of each partition; empty if the file does not exist.

        Raises MalformedCheckpoint or OSError.
        """
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in read_entries(self.path, 3, may_be_empty=True)
        }

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replaces the file atomically, unless this object has last written the same offsets. Raises OSError."""
        with self._lock:
            if offsets == self._offsets:
                return
            entries = (f"{each.topic} {each.partition} {offset}" for each, offset in sorted(offsets.items()))
            self._filesystem.write_atomically(self.path, format_entries(entries))
            self._offsets = dict(offsets)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Removes the entries of partitions, if the file has any. Raises MalformedCheckpoint or OSError."""
        with self._lock:
            offsets = self.read() if self._offsets is None else self._offsets
            if not offsets.keys().isdisjoint(partitions):
                forgotten = set(partitions)
                self.write({each: offset for each, offset in offsets.items() if each not in forgotten})
