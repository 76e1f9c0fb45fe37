"""One entry of `log.dirs`: its lock, its id, its clean-shutdown marker, its checkpoints and its state."""

import fcntl
import json
import os
from collections.abc import Collection
from contextlib import suppress

from kafkapy._core.broker_state.log_state import DirectoryState
from kafkapy.errors import StorageError
from kafkapy.storage.checkpoint import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    MalformedCheckpoint,
    OffsetCheckpointFile,
)
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.partition_directory import DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX, parse_directory_name
from kafkapy.types import ZERO_UUID, TopicPartition

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
# The directory that mkfs creates at the root of a file system. Kafka refuses it, but a log directory may be a disk.
LOST_AND_FOUND = "lost+found"
MARKED_SUFFIXES = (DELETE_SUFFIX, STRAY_SUFFIX, FUTURE_SUFFIX)
UNKNOWN_BROKER_EPOCH = -1


class LogDirectory(DirectoryState):
    """A log directory; owns its lock and its checkpoint files.

    The lock is a POSIX lock (`lockf`), as in Kafka: the kernel releases it when this process closes *any* descriptor of
    `.lock`, so that the file must be opened only once. `is_online` only changes from True to False, and any thread may
    read it. One thread at a time uses lock, marker and checkpoints.
    """

    __slots__ = (
        "_filesystem",
        "_lock_fd",
        "clean_broker_epoch",
        "cleaner_offsets",
        "directory_id",
        "high_watermarks",
        "log_start_offsets",
        "path",
        "recovery_points",
        "was_clean",
    )

    def __init__(self, path: str, filesystem: Filesystem, directory_id: bytes = ZERO_UUID) -> None:
        self.path = path
        self.directory_id = directory_id
        self.is_online = True
        self.was_clean = False
        self.clean_broker_epoch = UNKNOWN_BROKER_EPOCH
        self.recovery_points = OffsetCheckpointFile(os.path.join(path, RECOVERY_POINT_CHECKPOINT), filesystem)
        self.log_start_offsets = OffsetCheckpointFile(os.path.join(path, LOG_START_OFFSET_CHECKPOINT), filesystem)
        self.high_watermarks = OffsetCheckpointFile(os.path.join(path, HIGH_WATERMARK_CHECKPOINT), filesystem)
        self.cleaner_offsets = OffsetCheckpointFile(os.path.join(path, CLEANER_OFFSET_CHECKPOINT), filesystem)
        self._filesystem = filesystem
        self._lock_fd = -1

    def lock(self) -> None:
        """Creates the directory if needed and locks it.

        Raises StorageError if another process holds the lock, and OSError.
        """
        self._filesystem.make_directory(self.path)
        if self._lock_fd >= 0:
            return
        fd = os.open(os.path.join(self.path, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise StorageError(
                self.path, "the directory is locked: another broker is running on it, or still stopping"
            ) from error
        self._lock_fd = fd

    def unlock(self) -> None:
        """Releases the lock if it is held."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def refuse_foreign_directories(self) -> None:
        """Raises StorageError if it contains a directory whose name no broker gives, except lost+found.

        The entry of `log.dirs` may then be a mistake. Kafka refuses such a directory too. Raises OSError as well.
        """
        for name in sorted(entry.name for entry in os.scandir(self.path) if entry.is_dir()):
            is_ours = parse_directory_name(name) is not None or name.endswith(MARKED_SUFFIXES)
            if not is_ours and name != LOST_AND_FOUND:
                raise StorageError(
                    self.path,
                    f"Found directory {os.path.join(self.path, name)}, '{name}' is not in the form of "
                    "topic-partition or topic-partition.uniqueId-delete (if marked for deletion).",
                )

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Removes the entries of partitions from all offset checkpoints. Raises MalformedCheckpoint or OSError."""
        for file in (self.recovery_points, self.log_start_offsets, self.high_watermarks):
            file.forget(partitions)
        # The cleaner replaces a damaged file of its own.
        with suppress(MalformedCheckpoint):
            self.cleaner_offsets.forget(partitions)

    def take_clean_shutdown_marker(self) -> None:
        """Reads the clean-shutdown marker and removes it durably, because the logs are about to change. Raises OSError.

        Sets `was_clean`, and `clean_broker_epoch` to the broker epoch in the marker, or to -1 if the marker of an older
        release has no epoch. If there is no marker, syncs the directory instead, because a killed broker may have left
        names that are not durable.
        """
        path = os.path.join(self.path, CLEAN_SHUTDOWN_FILE)
        try:
            with open(path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            self._filesystem.sync_directory(self.path)
            return
        self.was_clean = True
        self.clean_broker_epoch = parse_clean_shutdown(content)
        self._filesystem.unlink(path)
        self._filesystem.sync_directory(self.path)

    def write_clean_shutdown_marker(self, broker_epoch: int) -> None:
        """Writes the clean-shutdown marker, the last write of a clean stop; it is durable on return. Raises OSError."""
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._filesystem.write_atomically(os.path.join(self.path, CLEAN_SHUTDOWN_FILE), content.encode())

    def take_offline(self) -> bool:
        """Marks the directory as offline; returns whether it was online."""
        was_online, self.is_online = self.is_online, False
        return was_online

    def usable_bytes(self) -> int:
        """Returns the bytes of the file system that are available to this process. Raises OSError."""
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self) -> int:
        """Returns the size of the file system in bytes. Raises OSError."""
        status = os.statvfs(self.path)
        return status.f_blocks * status.f_frsize

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r}, online={self.is_online})"


def parse_clean_shutdown(content: bytes) -> int:
    """Returns the broker epoch in the content of a clean-shutdown marker, or -1 if it contains none."""
    try:
        fields = json.loads(content)
    except ValueError:
        return UNKNOWN_BROKER_EPOCH
    epoch = fields.get("brokerEpoch", UNKNOWN_BROKER_EPOCH) if isinstance(fields, dict) else UNKNOWN_BROKER_EPOCH
    return epoch if isinstance(epoch, int) else UNKNOWN_BROKER_EPOCH
