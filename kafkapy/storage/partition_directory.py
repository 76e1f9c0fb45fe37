"""The names of partition directories: `<topic>-<partition>`, or with a suffix.

<topic>-<partition>.<32 hex digits>-delete    deletion pending
<topic>-<partition>.<32 hex digits>-stray     not in the metadata
<topic>-<partition>.<32 hex digits>-future    moving between log directories
"""

from kafkapy.decimal_text import is_number
from kafkapy.types import TopicPartition, random_uuid

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
LARGEST_NAME = 255
UNIQUE_DIGITS = 32


def parse_directory_name(name: str) -> TopicPartition | None:
    """Returns the partition of a directory name without suffix, or None for any other name."""
    if name.endswith((DELETE_SUFFIX, STRAY_SUFFIX, FUTURE_SUFFIX)):
        return None
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not is_number(partition):
        return None
    return TopicPartition(topic, int(partition))


def parse_future_name(name: str) -> TopicPartition | None:
    """Returns the partition of a future replica's directory name, or None for any other name."""
    if not name.endswith(FUTURE_SUFFIX):
        return None
    stem, dot, unique = name.removesuffix(FUTURE_SUFFIX).rpartition(".")
    return parse_directory_name(stem) if dot and len(unique) == UNIQUE_DIGITS else None


def is_too_long_to_move(partition: TopicPartition) -> bool:
    """Returns whether the directory name of the partition's future replica would be too long for a file system.

    This name is never shortened, so that such a partition cannot be moved between log directories.
    """
    return len(f"{partition}.") + UNIQUE_DIGITS + len(FUTURE_SUFFIX) > LARGEST_NAME


def unique_directory_name(partition: TopicPartition, suffix: str) -> str:
    """Returns a new name with `suffix`; the topic is shortened if the name would be too long for a file system."""
    tail = f"-{partition.partition}.{random_uuid().hex()}{suffix}"
    return partition.topic[: LARGEST_NAME - len(tail)] + tail
