"""Checks of the disks of log directories: access, free space, file system, mount options, time of a sync."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kafkapy.tools.diagnosis.finding import GOOD, NOTE, PROBLEM, WARNING, Finding, Findings, bytes_text
from kafkapy.tools.diagnosis.system import System

SUBJECT = "disk"
NETWORK_TYPES = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "fuse.glusterfs", "fuse.sshfs")
MEMORY_TYPES = ("tmpfs", "ramfs")
COPY_ON_WRITE_TYPES = ("btrfs", "zfs", "bcachefs")
LEAST_FREE_SHARE = 0.1
LEAST_FREE_BYTES = 1_000_000_000
SLOW_SYNC_S = 0.02
SYNCS = 9


def check_disks(system: System, directories: Sequence[str]) -> Findings:
    """Yields findings on the disks of log directories, given as absolute paths. Leaves no file behind."""
    by_device: dict[int, list[str]] = defaultdict(list)
    for directory in directories:
        existing = _nearest_existing(directory)
        yield from _access(directory, existing)
        yield from _room(directory, existing)
        yield from _file_system(system, directory, existing)
        if existing == directory:
            yield from _sync_time(directory)
        by_device[os.stat(existing).st_dev].append(directory)
    for shared in by_device.values():
        if len(shared) > 1:
            text = f"{' and '.join(shared)} are on one file system"
            yield Finding(NOTE, SUBJECT, text, "several log.dirs are useful only on separate disks")


def _nearest_existing(directory: str) -> str:
    path = Path(directory)
    return str(next(each for each in (path, *path.parents) if each.exists()))


def _access(directory: str, existing: str) -> Findings:
    if not os.path.isdir(existing):
        yield Finding(PROBLEM, SUBJECT, f"{existing} is not a directory")
    elif not os.access(existing, os.W_OK | os.X_OK):
        text = f"{existing} cannot be written to by the user {os.getuid()}"
        yield Finding(PROBLEM, SUBJECT, text, "run this as the broker's user, or change the owner of the directory")
    elif existing != directory:
        yield Finding(NOTE, SUBJECT, f"{directory} does not exist yet; the broker creates it")


def _room(directory: str, existing: str) -> Findings:
    state = os.statvfs(existing)
    total, free = state.f_frsize * state.f_blocks, state.f_frsize * state.f_bavail
    text = f"{bytes_text(free)} of {bytes_text(total)} are free for {directory}"
    if free < LEAST_FREE_BYTES:
        yield Finding(PROBLEM, SUBJECT, text, "a full disk takes the log directory offline")
    elif free < LEAST_FREE_SHARE * total:
        yield Finding(WARNING, SUBJECT, text, "lower the retention, or move partitions to another disk")
    else:
        yield Finding(GOOD, SUBJECT, text)
    if state.f_files and state.f_favail < LEAST_FREE_SHARE * state.f_files:
        yield Finding(WARNING, SUBJECT, f"few inodes are left for {directory}: a segment takes four files")


def _file_system(system: System, directory: str, existing: str) -> Findings:
    mount = system.mount_of(existing)
    if mount is None:
        return
    place = f"{directory} is on {mount.type} ({mount.point})"
    if "ro" in mount.options:
        yield Finding(PROBLEM, SUBJECT, f"{place}, which is read-only")
    elif mount.type in MEMORY_TYPES:
        yield Finding(WARNING, SUBJECT, f"{place}: all data is lost at a reboot")
    elif mount.type in NETWORK_TYPES:
        text = f"{place}: locks and syncs over a network may be unreliable"
        yield Finding(WARNING, SUBJECT, text, "use a local disk with ext4 or xfs")
    elif mount.type in COPY_ON_WRITE_TYPES:
        text = f"{place}, which copies overwritten blocks: indexes and checkpoints cost more"
        yield Finding(NOTE, SUBJECT, text, "Kafka is mostly used on ext4 and xfs")
    else:
        yield Finding(GOOD, SUBJECT, place)
    if "strictatime" in mount.options or not {"noatime", "relatime", "ro"} & set(mount.options):
        text = f"{mount.point} records the time of each read"
        yield Finding(WARNING, SUBJECT, text, f"mount -o remount,noatime {mount.point}, and the same in /etc/fstab")


def _sync_time(directory: str) -> Findings:
    """Yields a finding on how long a sync of 4 KB takes in a directory; nothing if it cannot be measured.

    The file that is written has no name, so that the kernel removes it when it is closed.
    """
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError:
        return  # not writable, which is another finding, or not supported by the file system
    try:
        durations_s = []
        for _ in range(SYNCS):
            began = time.monotonic()
            os.write(descriptor, bytes(4096))
            os.fdatasync(descriptor)
            durations_s.append(time.monotonic() - began)
    except OSError as error:
        yield Finding(PROBLEM, SUBJECT, f"{directory}: {error.strerror}")
        return
    finally:
        os.close(descriptor)
    median_s = sorted(durations_s)[SYNCS // 2]
    text = f"a sync of 4 KB in {directory} takes {1000 * median_s:.1f} ms"
    if median_s > SLOW_SYNC_S:
        yield Finding(WARNING, SUBJECT, text, "new topics and a clean stop wait for syncs; is the disk busy?")
    else:
        yield Finding(GOOD, SUBJECT, text)
