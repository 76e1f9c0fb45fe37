"""Reads ACLs and SCRAM users from the metadata log of a broker that need not run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkapy._core.bytes.record_batch import iterate_batches
from kafkapy.errors import ProtocolViolation
from kafkapy.protocol.record_frame import decode_metadata_record
from kafkapy.security.access_control_entry import AccessControlEntry

DIRECTORY = "__cluster_metadata-0"
_SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint")
_SEGMENT = re.compile(r"(\d{20})\.log")


class StoredSecurity:
    """The ACLs and the users with a SCRAM credential that a metadata log contains."""

    def __init__(self) -> None:
        self._acls: dict[bytes, AccessControlEntry] = {}
        self._credentials: set[tuple[str, int]] = set()

    @property
    def acls(self) -> list[AccessControlEntry]:
        return list(self._acls.values())

    @property
    def scram_users(self) -> set[str]:
        return {name for name, _ in self._credentials}

    def replay(self, record: Any) -> None:
        """Applies a metadata record; records of other types change nothing."""
        kind = type(record).__name__
        if kind == "AccessControlEntryRecord":
            self._acls[record.id] = AccessControlEntry(
                record.resource_type, record.resource_name, record.pattern_type, record.principal, record.host,
                record.operation, record.permission_type,
            )  # fmt: skip
        elif kind == "RemoveAccessControlEntryRecord":
            self._acls.pop(record.id, None)
        elif kind == "UserScramCredentialRecord":
            self._credentials.add((record.name, record.mechanism))
        elif kind == "RemoveUserScramCredentialRecord":
            self._credentials.discard((record.name, record.mechanism))


def read_security(metadata_log_dir: str) -> StoredSecurity | None:
    """Returns what the newest snapshot and the log after it contain; None if they cannot be read.

    The end of the log may contain records that the cluster has not committed yet.
    """
    found = StoredSecurity()
    try:
        for record in _records(Path(metadata_log_dir) / DIRECTORY):
            found.replay(record)
    except (OSError, ValueError, ProtocolViolation):
        return None
    return found


def _records(directory: Path) -> Iterator[Any]:
    names = sorted(path.name for path in directory.iterdir())
    snapshots = [match for name in names if (match := _SNAPSHOT.fullmatch(name))]
    start_offset = 0
    if snapshots:
        start_offset = int(snapshots[-1][1])
        yield from _records_of(directory / snapshots[-1][0], 0)
    for name in names:
        if _SEGMENT.fullmatch(name):
            yield from _records_of(directory / name, start_offset)


def _records_of(path: Path, start_offset: int) -> Iterator[Any]:
    for batch in iterate_batches(path.read_bytes()):
        if batch.is_control or batch.last_offset < start_offset:
            continue
        for record in batch:
            if record.offset >= start_offset:
                yield decode_metadata_record(bytes(record.value or b""))
