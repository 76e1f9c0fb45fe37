"""Checks of the log directories: their owner, how the broker was stopped, topics without recent writes."""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Sequence
from pathlib import Path

from kafkapy.config import BrokerConfig
from kafkapy.config.properties import read_properties
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.diagnosis.finding import GOOD, NOTE, PROBLEM, Finding, Findings
from kafkapy.tools.diagnosis.system import System

SUBJECT = "data"
PARTITION = re.compile(r"(?P<topic>.+)-\d+")
DAY_S = 86_400
SHOWN_TOPICS = 10
# struct flock of 64-bit Linux: type, whence, start, length, process.
FLOCK = "hhqqi0q"


class Inventory(NamedTuple):
    """The number of partitions in the log directories, and the state of the broker that uses the directories.

    last_change_s: the time (seconds since 1970) of the last write to each topic, or of its creation if that is later.
    Internal topics are left out. is_running: whether a broker has locked a directory. was_stopped_cleanly: whether the
    directories have the marker of a clean stop.
    """

    partitions: int
    last_change_s: dict[str, float]
    is_running: bool
    was_stopped_cleanly: bool

    @property
    def newest_change_s(self) -> float:
        return max(self.last_change_s.values(), default=0.0)


def take_inventory(directories: Sequence[str]) -> Inventory:
    """Returns the inventory of those log directories that can be read."""
    partitions, changed, running, clean = 0, dict[str, float](), False, True
    for path in map(Path, directories):
        if not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
            continue
        running = running or _is_locked(path / ".lock")
        clean = clean and ((path / ".kafka_cleanshutdown").exists() or not (path / "meta.properties").exists())
        for entry in path.iterdir():
            match = PARTITION.fullmatch(entry.name)
            if match is None or not entry.is_dir():
                continue
            partitions += 1
            if not entry.name.startswith("__"):
                changed[match["topic"]] = max(changed.get(match["topic"], 0.0), _last_change_s(entry))
    return Inventory(partitions, changed, running, clean)


def _last_change_s(partition: Path) -> float:
    """Returns when a partition was last written to or created (seconds since 1970); 0.0 if this time cannot be read.

    If at least one segment has records, empty segments are ignored, because their files were not created by a write. If
    all segments are empty, retention has removed all records; then the time at which the last segment was created is
    used.
    """
    try:
        segments = [path.stat() for path in partition.glob("*.log")]
        created = [path.stat() for path in partition.glob("partition.metadata")]
    except OSError:
        return 0.0  # the partition was just deleted, or this user cannot read it
    written = [state for state in segments if state.st_size] or segments
    return max((state.st_mtime for state in written + created), default=0.0)


def _is_locked(path: Path) -> bool:
    """Returns whether a broker has locked the directory.

    Queries the lock without taking it, so that a broker can be started at the same time.
    """
    query = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        with path.open("rb") as file:
            kind, *_ = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, query))
    except OSError:
        return False
    return bool(kind != fcntl.F_UNLCK)


def check_data(config: BrokerConfig, inventory: Inventory) -> Findings:
    """Yields findings on the node ids of the log directories, and on whether the last stop was clean."""
    for directory in config.log_dirs:
        path = Path(directory) / "meta.properties"
        if not os.access(path, os.R_OK):
            continue
        properties = read_properties(str(path))
        node = properties.get("node.id", properties.get("broker.id"))
        if node != str(config.node_id):
            text = f"{directory} belongs to node {node}, but node.id is {config.node_id}"
            yield Finding(PROBLEM, SUBJECT, text, f"set node.id={node}, or log.dirs to this node's directory")
    if inventory.is_running:
        yield Finding(GOOD, SUBJECT, f"a broker runs on these directories, with {inventory.partitions} partitions")
    elif not inventory.was_stopped_cleanly:
        text = f"the last stop was not clean: the next start checks {inventory.partitions} partitions"
        yield Finding(NOTE, SUBJECT, text)
    else:
        yield Finding(GOOD, SUBJECT, f"no broker runs on these directories, with {inventory.partitions} partitions")


def check_idle_topics(config: BrokerConfig, system: System, inventory: Inventory, idle_days: int) -> Findings:
    """Yields a note on the topics that had no write for `idle_days`. Reads of a topic leave no trace in its files."""
    limit_s = system.wall_s - DAY_S * idle_days
    idle = sorted(topic for topic, last_s in inventory.last_change_s.items() if last_s < limit_s)
    if not inventory.last_change_s:
        return
    if not idle:
        yield Finding(GOOD, "topics", f"each was written to in the last {idle_days} days")
        return
    shown = ", ".join(idle[:SHOWN_TOPICS]) + (", ..." if len(idle) > SHOWN_TOPICS else "")
    text = f"{len(idle)} of {len(inventory.last_change_s)} were not written to for {idle_days} days: {shown}"
    listener = config.broker_listeners[0]
    address = str(listener._replace(host=listener.host or "localhost")).partition("://")[2]
    command = f"kafkapy topics --bootstrap-server {address} --delete --topic NAME"
    yield Finding(NOTE, "topics", text, f"if nobody reads them either: {command}")
