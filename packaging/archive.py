"""Reproducible archives: names in order, no owners, one timestamp.

python packaging/archive.py FOLDER FILE.tar.gz     packs a folder under its own name
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path

EXECUTABLE, READABLE = 0o755, 0o644


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Returns the entry without the fields that differ between two builds of the same sources."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    entry.mode = EXECUTABLE if entry.isdir() or entry.mode & 0o100 else READABLE
    return entry


def archive(folder: Path, prefix: str = "") -> bytes:
    """Returns an uncompressed tar of a folder's files, with names relative to it below `prefix`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, prefix + str(path.relative_to(folder)), recursive=False, filter=anonymous)
    return buffer.getvalue()


def compressed(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=9, mtime=0)


if __name__ == "__main__":
    source = Path(sys.argv[1])
    Path(sys.argv[2]).write_bytes(compressed(archive(source, f"{source.name}/")))
