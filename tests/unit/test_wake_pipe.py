"""A pipe that wakes a thread: full, empty, and closed."""

import fcntl
import os

import pytest

from kafkapy.readable import is_readable
from kafkapy.wake_pipe import WakePipe


@pytest.fixture
def pipe():
    made = WakePipe()
    yield made
    made.close()


def test_a_woken_pipe_is_readable_until_it_is_cleared(pipe):
    assert not is_readable(pipe.fileno())
    pipe.wake()
    assert is_readable(pipe.fileno())
    pipe.clear()
    assert not is_readable(pipe.fileno())
    pipe.clear()


def test_a_full_pipe_wakes_without_an_error(pipe):
    for _ in range(100_000):
        pipe.wake()
    assert is_readable(pipe.fileno())


def test_a_closed_pipe_touches_no_file_that_gets_its_descriptors(pipe, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    opened = os.open(path, os.O_RDWR)
    pipe.close()
    files = [opened, *(fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, number) for number in (pipe._reader, pipe._writer))]
    try:
        assert files[1:] == [pipe._reader, pipe._writer]
        pipe.wake()
        pipe.clear()
        pipe.close()
        assert os.lseek(opened, 0, os.SEEK_CUR) == 0  # the position is that of all three descriptors
        assert path.read_bytes() == b"content"
    finally:
        for each in files:
            os.close(each)
