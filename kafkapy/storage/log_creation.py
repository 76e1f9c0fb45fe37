"""Creates partition directories, many of them with one sync.

The file partition.metadata of a directory is durable before any other file is created in the directory. When the broker
starts, it deletes each directory that contains at most this file, because the creation of its log was interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.partition_metadata import FILE_NAME as PARTITION_METADATA_FILE
from kafkapy.storage.partition_metadata import write_partition_metadata
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.config import TopicConfig

# With more new directories than this, the file system is synced once: a directory takes two syncs, each of which waits
# for the disk.
MOST_CREATED_WITH_SYNC_EACH = 16


class NewLog(NamedTuple):
    """A log to be created. It is created in the log directory with the id `directory_id`. If this id is None or the
    directory is not online, it is created in the log directory with the fewest partitions.

    `is_new` is False if the partition may have had a log on this broker before. That log is then not created while a
    log directory is offline, because that directory may contain it.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    topic_config: TopicConfig
    directory_id: bytes | None = None
    is_new: bool = True


def create_directories(filesystem: Filesystem, log_directory: str, wanted: Sequence[NewLog]) -> list[str]:
    """Creates the directories of partitions, each with its partition.metadata, and returns their paths.

    All of them are durable on return. Raises OSError.
    """
    sync_each = len(wanted) <= MOST_CREATED_WITH_SYNC_EACH
    paths = [os.path.join(log_directory, str(each.topic_partition)) for each in wanted]
    for path in paths:
        filesystem.make_directory(path, sync=False)
    if sync_each:
        filesystem.sync_directory(log_directory)
    for path, each in zip(paths, wanted, strict=True):
        write_partition_metadata(filesystem, path, each.topic_id, sync=sync_each)
    if not sync_each:
        filesystem.sync_filesystem(log_directory)
    return paths


def is_unfinished_creation(path: str) -> bool:
    """Returns whether a partition directory contains at most its `partition.metadata`, because its creation was
    interrupted.

    Such a directory contains no records, because a log is created after `partition.metadata`. Raises OSError.
    """
    return set(os.listdir(path)) <= {PARTITION_METADATA_FILE, PARTITION_METADATA_FILE + ".tmp"}
