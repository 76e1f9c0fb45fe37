"""Index files: bytes on disk, preallocation, damaged files, and a full disk."""

import errno
import os
import resource
import struct
import subprocess
import sys

import pytest

from kafkapy._core.bytes.index_file import CorruptIndexError
from kafkapy._core.bytes.offset_index import OffsetIndex
from kafkapy._core.bytes.time_index import TimeIndex

KINDS = [(OffsetIndex, 8), (TimeIndex, 12)]


def add(index, offset, other):
    if isinstance(index, OffsetIndex):
        index.append(offset, other)
    else:
        assert index.maybe_append(other, offset)


def test_bytes_are_kafkas(tmp_path):
    offsets = OffsetIndex(str(tmp_path / "i"), 100, 1024)
    times = TimeIndex(str(tmp_path / "t"), 100, 1024)
    offsets.append(105, 4200)
    times.maybe_append(1487165556824, 105)
    offsets.close()
    times.close()
    assert (tmp_path / "i").read_bytes() == struct.pack(">ii", 5, 4200)
    assert (tmp_path / "t").read_bytes() == struct.pack(">qi", 1487165556824, 5)


@pytest.mark.parametrize(("kind", "entry_size"), KINDS)
def test_preallocated_sparse_and_trimmed(tmp_path, kind, entry_size):
    path = tmp_path / "index"
    index = kind(str(path), 0, 10485760)
    assert path.stat().st_size == 10485760 // entry_size * entry_size
    assert path.stat().st_blocks == 0
    for offset in range(1, 2001):
        add(index, offset, offset)
    assert path.stat().st_blocks * 512 < 100_000
    index.truncate_to(1001)
    assert index.entries == 1000
    index.flush()
    index.rename_to(str(tmp_path / "moved"))
    index.close()
    index.close()
    assert (tmp_path / "moved").stat().st_size == 1000 * entry_size
    again = kind(str(tmp_path / "moved"), 0, 10485760)
    assert (again.entries, again.last_offset, again.is_full) == (1000, 1000, True)
    assert again.resize(10485760)
    assert not again.is_full
    add(again, 1001, 1001)
    assert again.entries == 1001


@pytest.mark.parametrize(("kind", "entry_size"), KINDS)
def test_truncation_leaves_zeros(tmp_path, kind, entry_size):
    index = kind(str(tmp_path / "index"), 0, 120)
    for offset in range(1, 9):
        add(index, offset, offset)
    index.truncate_to(3)
    index.close(trim=False)
    data = (tmp_path / "index").read_bytes()
    assert len(data) == 120
    assert not any(data[2 * entry_size :])


@pytest.mark.parametrize(("kind", "entry_size"), KINDS)
def test_damaged_files_are_told_and_can_be_rebuilt(tmp_path, kind, entry_size):
    path = tmp_path / "index"
    good = kind(str(path), 50, 240)
    for offset in range(51, 56):
        add(good, offset, offset)
    good.close()
    data = path.read_bytes()
    for damaged in (
        data[:-1],
        data + b"\0",
        data + bytes(entry_size),
        data[:-4] + b"\xff" * 4 if entry_size == 12 else b"\xff" * 8,
    ):
        path.write_bytes(damaged)
        index = kind(str(path), 50, 240)
        with pytest.raises(CorruptIndexError):
            index.sanity_check()
        index.reset()
        add(index, 60, 60)
        index.close()
        assert path.stat().st_size == entry_size


@pytest.mark.parametrize(("kind", "entry_size"), KINDS)
def test_an_empty_file_is_an_empty_index(tmp_path, kind, entry_size):
    path = tmp_path / "index"
    path.write_bytes(b"")
    index = kind(str(path), 7, 240)
    index.sanity_check()
    assert (index.entries, index.last_offset, index.is_full) == (0, 7, True)
    assert index.lookup(100)[0 if kind is OffsetIndex else 1] == 7
    with pytest.raises(ValueError, match="full"):
        add(index, 8, 8)
    index.resize(240)
    add(index, 8, 8)


def test_values_out_of_range_and_impossible_sizes_are_refused(tmp_path):
    index = OffsetIndex(str(tmp_path / "i"), 100, 80)
    for offset, position in ((99, 0), (100 + 2**31, 0), (101, -1), (101, 2**31)):
        with pytest.raises(ValueError, match="32 bits"):
            index.append(offset, position)
    assert not index.can_hold(100 + 2**31)
    with pytest.raises(ValueError, match="less than an entry"):
        OffsetIndex(str(tmp_path / "j"), 0, 7)
    with pytest.raises(FileNotFoundError):
        OffsetIndex(str(tmp_path / "none"), 0, 80, writable=False)
    index.append(101, 5)
    with pytest.raises(ValueError, match="shrink"):
        index.resize(0)
    index.close()
    with pytest.raises(ValueError, match="closed"):
        index.lookup(101)
    with pytest.raises(ValueError, match="closed"):
        index.append(102, 6)
    reader = OffsetIndex(str(tmp_path / "i"), 100, 80, writable=False)
    assert reader.lookup(200) == (101, 5)
    with pytest.raises(ValueError, match="read-only"):
        reader.truncate()


FULL_DISK = """
import resource, signal, sys
from kafkapy._core.bytes.offset_index import OffsetIndex
index = OffsetIndex(sys.argv[1], 0, 8192 * 8)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
added = 0
try:
    for offset in range(1, 8192):
        index.append(offset, offset)
        added += 1
except OSError as error:
    print(error.errno, added, index.entries, index.lookup(10**6))
"""


def test_a_file_that_cannot_grow_is_an_error_and_not_a_signal(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "i")],
        capture_output=True,
        text=True,
        check=True,
        cwd=os.getcwd(),
    )
    assert done.stdout.split("\n")[0] == f"{errno.EFBIG} 1024 1024 (1024, 1024)"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 8192
