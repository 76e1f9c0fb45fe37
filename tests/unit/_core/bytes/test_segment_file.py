"""Segment files: appends are all or nothing, reads are clipped, ranges keep the file open."""

import errno
import os
import socket
import subprocess
import sys

import pytest

from kafkapy._core.bytes.segment_file import FileRange, SegmentFile


@pytest.fixture
def file(tmp_path):
    segment = SegmentFile(str(tmp_path / "00000000000000000000.log"), create=True)
    yield segment
    segment.close()


def test_append_and_read(file):
    assert file.append([b"abc", b"", memoryview(b"xdefx")[1:4], bytearray(b"g")]) == 0
    assert file.append([]) == 7
    assert file.append([b"h"] * 3000) == 7
    assert file.size == 3007 == os.path.getsize(file.path)
    assert file.pread(1, 6) == b"bcdefg"
    assert file.pread(3005, 100) == b"hh"
    assert file.pread(9999, 1) == b""
    target = bytearray(4)
    assert (file.read_into(0, target), bytes(target)) == (4, b"abcd")
    assert file.read_into(3006, target) == 1
    for position, length in ((-1, 1), (0, -1)):
        with pytest.raises(ValueError, match="bad range"):
            file.pread(position, length)


def test_opens_what_exists(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"12345")
    for create in (False, True):
        segment = SegmentFile(str(path), create=create, preallocate=100)
        assert segment.size == 5
        segment.close()
    with pytest.raises(FileNotFoundError):
        SegmentFile(str(tmp_path / "none"))


def test_preallocated_until_closed(tmp_path):
    path = tmp_path / "log"
    segment = SegmentFile(str(path), create=True, preallocate=4096)
    segment.append([b"abc"])
    assert (segment.size, path.stat().st_size) == (3, 4096)
    assert segment.pread(0, 100) == b"abc"
    segment.close()
    assert path.read_bytes() == b"abc"


def test_truncate_and_rename(file, tmp_path):
    file.append([b"abcdef"])
    file.truncate(2)
    file.append([b"x"])
    file.rename_to(str(tmp_path / "renamed"))
    assert (tmp_path / "renamed").read_bytes() == b"abx"
    assert file.path == str(tmp_path / "renamed")
    with pytest.raises(ValueError, match="cannot truncate"):
        file.truncate(4)


def test_a_range_keeps_the_file_open(file):
    file.append([b"0123456789"])
    part = file.slice(2, 4)
    assert (part.fd, part.position, part.length, len(part), part.read()) == (file.fd, 2, 4, 4, b"2345")
    assert len(file.slice(8, 100)) == 2
    descriptor = file.fd
    file.close()
    assert file.closed
    assert part.read() == b"2345"
    with pytest.raises(ValueError, match="closed"):
        file.append([b""])
    with pytest.raises(ValueError, match="closed"):
        file.slice(0, 1)
    del part
    assert file.fd == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    with pytest.raises(ValueError, match="closed"):
        FileRange(file, 0, 1)


def test_a_range_is_sent_from_any_position_until_the_socket_is_full(file):
    file.append([b"0123456789"])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        part = file.slice(2, 6)
        assert part.send(ours.fileno()) == 6
        assert part.send(ours.fileno(), 4) == 2
        assert theirs.recv(100) == b"23456767"
        ours.setblocking(False)
        file.append([bytes(1 << 22)])
        everything = file.slice(0, file.size)
        sent = everything.send(ours.fileno())
        while sent < file.size:
            try:
                sent += everything.send(ours.fileno(), sent)
            except BlockingIOError:
                break
        assert 0 < sent < file.size


LIMITED = """
import resource, signal, sys
from kafkapy._core.bytes.segment_file import SegmentFile
segment = SegmentFile(sys.argv[1], create=True)
segment.append([b"kept"])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    segment.append([b"x" * 600, b"y" * 600])
except OSError as error:
    print(error.errno, error.filename == sys.argv[1], segment.size)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
print(segment.append([b"z"]))
"""


def test_a_failed_append_leaves_nothing(tmp_path):
    path = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True, cwd=os.getcwd()
    )
    assert done.stdout == f"{errno.EFBIG} True 4\n4\n"
    assert path.read_bytes() == b"keptz"


def test_a_full_device():
    segment = SegmentFile("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        segment.append([b"x"])
    assert caught.value.errno == errno.ENOSPC
    assert segment.size == 0
