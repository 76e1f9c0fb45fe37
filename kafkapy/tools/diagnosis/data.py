"""What lies in the log directories: partitions, who holds them, when topics were last written to."""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kafkapy.config import BrokerConfig
from kafkapy.config.properties import read_properties
from kafkapy.tools.diagnosis.finding import GOOD, NOTE, PROBLEM, Finding, Findings
from kafkapy.tools.diagnosis.system import System

SUBJECT = "data"
PARTITION = re.compile(r"(?P<topic>.+)-\d+")
DAY_S = 86_400
SHOWN_TOPICS = 10
# struct flock of 64-bit Linux: type, whence, start, length, process.
FLOCK = "hhqqi0q"


class Inventory(NamedTuple):
    """`last_written_s`: topic -> time of the last write to a segment that is not empty, internal topics left out."""

    partitions: int
    last_written_s: dict[str, float]
    is_running: bool
    was_stopped_cleanly: bool

    @property
    def newest_change_s(self) -> float:
        return max(self.last_written_s.values(), default=0.0)


def take_inventory(directories: Sequence[str]) -> Inventory:
    """Of the log directories that can be read."""
    partitions, written, running, clean = 0, dict[str, float](), False, True
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
                written[match["topic"]] = max(written.get(match["topic"], 0.0), _last_write_s(entry))
    return Inventory(partitions, written, running, clean)


def _last_write_s(partition: Path) -> float:
    try:
        states = [path.stat() for path in partition.glob("*.log")]
    except OSError:
        return 0.0  # deleted while we look, or not ours to read
    return max((state.st_mtime for state in states if state.st_size), default=0.0)


def _is_locked(path: Path) -> bool:
    """Whether a broker holds the directory. Asks without taking the lock: a broker may be starting."""
    question = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        with path.open("rb") as file:
            kind, *_ = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, question))
    except OSError:
        return False
    return bool(kind != fcntl.F_UNLCK)


def check_data(config: BrokerConfig, inventory: Inventory) -> Findings:
    """Whose directories these are, and what the next start will have to do."""
    for directory in config.log_dirs:
        path = Path(directory) / "meta.properties"
        if not os.access(path, os.R_OK):
            continue
        properties = read_properties(str(path))
        node = properties.get("node.id", properties.get("broker.id"))
        if node != str(config.node_id):
            text = f"{directory} belongs to node {node}, and node.id is {config.node_id}"
            yield Finding(PROBLEM, SUBJECT, text, f"set node.id={node}, or log.dirs to this node's directory")
    if inventory.is_running:
        yield Finding(GOOD, SUBJECT, f"a broker runs on these directories, with {inventory.partitions} partitions")
    elif not inventory.was_stopped_cleanly:
        text = f"the last stop was not clean: the next start looks through {inventory.partitions} partitions"
        yield Finding(NOTE, SUBJECT, text)
    else:
        yield Finding(GOOD, SUBJECT, f"no broker runs on these directories, with {inventory.partitions} partitions")


def check_idle_topics(system: System, inventory: Inventory, idle_days: int) -> Findings:
    """Topics that nobody has written to for a while. Whether they are read is not to be seen from the files."""
    limit_s = system.now_s - DAY_S * idle_days
    idle = sorted(topic for topic, last_s in inventory.last_written_s.items() if last_s < limit_s)
    if not inventory.last_written_s:
        return
    if not idle:
        yield Finding(GOOD, "topics", f"each was written to in the last {idle_days} days")
        return
    shown = ", ".join(idle[:SHOWN_TOPICS]) + (", ..." if len(idle) > SHOWN_TOPICS else "")
    text = f"{len(idle)} of {len(inventory.last_written_s)} were not written to for {idle_days} days: {shown}"
    yield Finding(NOTE, "topics", text, "if nobody reads them either: kafkapy topics --delete --topic NAME")
