"""A pipe that wakes a thread: full, empty, and closed."""

import os
import select

import pytest

from kafkapy.wake_pipe import WakePipe


@pytest.fixture
def pipe():
    made = WakePipe()
    yield made
    made.close()


def is_readable(pipe):
    return bool(select.select([pipe], [], [], 0)[0])


def test_a_woken_pipe_is_readable_until_it_is_cleared(pipe):
    assert not is_readable(pipe)
    pipe.wake()
    assert is_readable(pipe)
    pipe.clear()
    assert not is_readable(pipe)
    pipe.clear()


def test_a_full_pipe_wakes_without_an_error(pipe):
    for _ in range(100_000):
        pipe.wake()
    assert is_readable(pipe)


def test_a_closed_pipe_touches_no_file_that_gets_its_descriptors(pipe, tmp_path):
    pipe.close()
    path = tmp_path / "file"
    path.write_bytes(b"content")
    files = [os.open(path, os.O_RDWR) for _ in range(4)]
    try:
        assert pipe.fileno() in files
        pipe.wake()
        pipe.clear()
        pipe.close()
        assert [os.lseek(each, 0, os.SEEK_CUR) for each in files] == [0] * 4
        assert path.read_bytes() == b"content"
    finally:
        for each in files:
            os.close(each)
