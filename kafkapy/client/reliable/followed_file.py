"""Reads a file line by line from a stored position, while the file grows and is truncated, rotated or removed.

A position names the file by its inode and by its first bytes. The file is therefore found under the name that a
rotation has given to it, and a new file that has got the inode of a removed file is recognized as another file.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from kafkapy.named_tuple import NamedTuple

HEAD_BYTES = 256
# A longer line is divided.
MOST_LINE_BYTES = 512 << 10
_PART_BYTES = 256 << 10
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4")
# What follows the name in those of rotated files: nothing, a number after a separator, or a time.
_ROTATED = re.compile(r"(([-._][0-9]|[0-9]{8})[-._:+TZ0-9]*)?")
_REMEMBERED_FILES = 100


class FilePosition(NamedTuple):
    """A position in the file with this inode: all bytes before `offset` were read.

    `head` is the digest of the file's first `head_size` bytes, by which a file with a reused inode is recognized.
    """

    inode: int
    offset: int
    head_size: int
    head: bytes


class Line(NamedTuple):
    """A line without its newline, and the file's offset after the newline."""

    content: bytes
    end: int


def digest(content: bytes) -> bytes:
    """Returns the BLAKE2b digest, of eight bytes, of the first bytes of a file."""
    return blake2b(content, digest_size=8).digest()


class FollowedFile:
    """Reads the file with a given path line by line, and goes on when it is rotated, truncated or removed. Not
    thread-safe.

    counts: rotated (a new file has the path), truncated (the file was rewritten from its beginning), vanished (no file
    has the path), split (lines that were too long), lost (the stored position belongs to a file that no longer exists),
    unreadable (the file cannot be opened).
    """

    def __init__(self, path: Path, counts: Counter[str], *, begins_at_end: bool = False) -> None:
        self.path = path
        self._counts = counts
        self._begins_at_end = begins_at_end
        self._file: BinaryIO | None = None
        self._offset = 0
        self._head = b""  # the first bytes of the present file, as far as they were read
        self._first: FilePosition | None = None  # where the first file was opened
        self._opened: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED_FILES)  # device and inode of the last files
        self._has_vanished = False

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def seek(self, position: FilePosition | None) -> None:
        """Continues at a stored position, in the file that it names, even if that file was rotated.

        None begins at the start of the file that has the path, or at its end if `begins_at_end` is set; if the object
        has opened a file before, None continues where it has opened the first one. If the file of the position no
        longer exists, counts it as lost and begins at the start of the file that has the path.
        """
        self.close()
        position = position or self._first
        if position is None:
            self._open(self.path, at_end=self._begins_at_end)
            return
        found = next((each for each in self._siblings() if is_at(each, position)), None)
        if found is None:
            self._counts["lost"] += 1
            self._open(self.path)
        elif self._open(found):
            self._offset = position.offset

    def position(self) -> FilePosition | None:
        """Returns the position after the last line that was returned; None if no file is open."""
        if self._file is None:
            return None
        head = os.pread(self._file.fileno(), HEAD_BYTES, 0)[: self._offset]
        return FilePosition(os.fstat(self._file.fileno()).st_ino, self._offset, len(head), digest(head))

    @property
    def is_gone(self) -> bool:
        """Returns whether no file has the path any more, and all files that had it were read to their ends."""
        is_read = self._file is None or os.fstat(self._file.fileno()).st_size <= self._offset
        return is_read and not self.path.exists() and (self._file is None or not self._successors())

    def has_opened(self, status: os.stat_result) -> bool:
        """Returns whether the file with this status is read or was read. The last hundred files are remembered."""
        return (status.st_dev, status.st_ino) in self._opened

    def read(self, most_bytes: int) -> list[Line]:
        """Returns the next complete lines, together about `most_bytes`; [] if the file has no further complete line.
        Raises OSError.
        """
        if self._file is None and not self._open(self.path):
            self._has_vanished = self._note_vanished()
            return []
        self._has_vanished = False
        lines = self._read_lines(most_bytes)
        if lines:
            return lines
        return self._at_end()

    # Internal

    def _note_vanished(self) -> bool:
        if not self._has_vanished:
            self._counts["vanished"] += 1
        return True

    def _open(self, path: Path, *, at_end: bool = False) -> bool:
        try:
            file = self._readable(path)
        except FileNotFoundError:
            return False
        if file is not None:
            self._begin(file, at_end=at_end)
        return file is not None

    def _readable(self, path: Path) -> BinaryIO | None:
        """Opens a file; counts it and returns None if it cannot be read. Raises FileNotFoundError."""
        try:
            file = path.open("rb", buffering=0)
            try:
                os.pread(file.fileno(), 1, 0)
            except OSError:
                file.close()
                raise
        except FileNotFoundError:
            raise
        except OSError:
            self._counts["unreadable"] += 1
            return None
        return file

    def _begin(self, file: BinaryIO, *, at_end: bool = False) -> None:
        self._file = file
        status = os.fstat(file.fileno())
        self._offset = status.st_size if at_end else 0
        self._opened.append((status.st_dev, status.st_ino))
        self._first = self._first or self.position()
        self._begins_at_end = False
        self._head = b""

    def _read_lines(self, most_bytes: int) -> list[Line]:
        assert self._file is not None
        self._check_head()
        lines: list[Line] = []
        taken = 0
        while taken < most_bytes:
            try:
                part = os.pread(self._file.fileno(), max(_PART_BYTES, MOST_LINE_BYTES + 1), self._offset)
            except OSError:
                if not lines:
                    raise
                break  # the next call raises the error, after the lines were written
            end = part.rfind(b"\n") + 1
            if end == 0 and len(part) <= MOST_LINE_BYTES:
                break
            if end == 0:
                end = MOST_LINE_BYTES
                self._counts["split"] += 1
                self._take(lines, part[:end])
            else:
                for content in part[: end - 1].split(b"\n"):
                    self._take(lines, content, 1)
            taken += end
        return lines

    def _take(self, lines: list[Line], content: bytes, line_end: int = 0) -> None:
        self._offset += len(content) + line_end
        lines.append(Line(content, self._offset))

    def _check_head(self) -> None:
        """Goes back to the beginning if the file is shorter than the position, or its first bytes have changed."""
        assert self._file is not None
        head = os.pread(self._file.fileno(), HEAD_BYTES, 0)
        size = os.fstat(self._file.fileno()).st_size
        if size < self._offset or not head.startswith(self._head):
            self._counts["truncated"] += 1
            self._offset = 0
        self._head = head[: self._offset]

    def _at_end(self) -> list[Line]:
        """Goes on to the next file, if the present file was renamed or removed and was read to its end.

        Returns the last line of the present file if that has no newline, and otherwise nothing.
        """
        assert self._file is not None
        if self._has_name():
            return []
        rest = os.pread(self._file.fileno(), MOST_LINE_BYTES, self._offset)
        if b"\n" in rest:
            return []  # written since: the next call reads it
        following = self._next_file()
        if following is None:
            return []  # the name will be there again, and until then the old file may still grow
        self._counts["rotated"] += 1
        lines: list[Line] = []
        if rest:
            self._take(lines, rest)
        self.close()
        self._begin(following)
        return lines

    def _next_file(self) -> BinaryIO | None:
        """Opens the next file that can be read. Returns None if there is none, or if one is renamed at this moment."""
        try:
            return next((file for file in map(self._readable, self._successors()) if file is not None), None)
        except FileNotFoundError:
            return None

    def _has_name(self) -> bool:
        assert self._file is not None
        return _is_inode(self.path, os.fstat(self._file.fileno()))

    def _siblings(self) -> list[Path]:
        """Returns the file and its rotated predecessors (`app.log.1`, `app.log-20240101`), the oldest first."""
        try:
            names = [each for each in self.path.parent.iterdir() if each.name.startswith(self.path.name)]
        except OSError:
            return []
        found = []
        for each in names:
            try:
                if each.is_file() and each.suffix not in _COMPRESSED:
                    found.append((each == self.path, each.stat().st_mtime_ns, each))
            except OSError:
                continue
        return [each for _, _, each in sorted(found)]

    def _successors(self) -> list[Path]:
        """Returns the files that have had the path after the present one, the oldest first: it may have been rotated
        several times since it was opened. Files whose names do not end like those of rotated files are left out.
        """
        assert self._file is not None
        mine = os.fstat(self._file.fileno())
        length = len(self.path.name)
        siblings = [each for each in self._siblings() if _ROTATED.fullmatch(each.name[length:])]
        if siblings and siblings[-1] == self.path:  # which may be a link to one of the others
            latest = self.path.stat()
            siblings = [each for each in siblings if each == self.path or not _is_inode(each, latest)]
        for index, each in enumerate(siblings):
            if _is_inode(each, mine):
                return siblings[index + 1 :]
        return [each for each in siblings if each == self.path or each.stat().st_mtime_ns > mine.st_mtime_ns]


def _is_inode(path: Path, wanted: os.stat_result) -> bool:
    """Returns whether the file at `path` is the file with the status `wanted`."""
    try:
        found = path.stat()
    except OSError:
        return False
    return (found.st_ino, found.st_dev) == (wanted.st_ino, wanted.st_dev)


def is_at(path: Path, position: FilePosition) -> bool:
    """Returns whether the file at `path` has the inode and the first bytes that the position names, and reaches its
    offset.
    """
    try:
        with path.open("rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if found.st_ino != position.inode or found.st_size < position.offset:
                return False
            return digest(os.pread(file.fileno(), position.head_size, 0)) == position.head
    except OSError:
        return False
