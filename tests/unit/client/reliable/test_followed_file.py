"""A file that is rotated, truncated, rewritten and removed while it is read."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from kafkapy.client.reliable import followed_file
from kafkapy.client.reliable.followed_file import FollowedFile


class Reader:
    """A followed file and the lines that it has returned."""

    def __init__(self, path: Path, position=None, **settings) -> None:
        self.counts: Counter[str] = Counter()
        self.file = FollowedFile(path, self.counts, **settings)
        self.file.seek(position)

    def lines(self) -> list[str]:
        """Returns the lines that can be read now."""
        found = []
        empty = 0
        while empty < 4:  # a change of the file takes a call without lines
            part = self.file.read(1 << 20)
            empty = 0 if part else empty + 1
            found += [each.content.decode() for each in part]
        return found


@pytest.fixture
def path(tmp_path) -> Path:
    found = tmp_path / "app.log"
    found.write_text("1\n2\n")
    return found


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_only_complete_lines_are_returned(path):
    reader = Reader(path)
    append(path, "3")
    assert reader.lines() == ["1", "2"]
    append(path, "4\n\n")
    assert reader.lines() == ["34", ""]


def test_a_rotation_loses_no_line(path):
    reader = Reader(path)
    assert reader.lines() == ["1", "2"]
    path.rename(path.with_name("app.log.1"))
    append(path.with_name("app.log.1"), "3\n4 without an end")
    assert reader.lines() == ["3"]
    append(path, "5\n")
    assert reader.lines() == ["4 without an end", "5"]
    assert reader.counts == {"rotated": 1}


def test_rotations_while_nobody_reads_lose_no_line(path):
    reader = Reader(path)
    assert reader.lines() == ["1", "2"]
    position = reader.file.position()
    reader.file.close()
    append(path, "3\n")
    path.rename(path.with_name("app.log.2"))
    append(path.with_name("app.log.1"), "4\n")
    append(path, "5\n")
    for number, name in enumerate(("app.log.2", "app.log.1", "app.log")):
        found = path.with_name(name)
        os.utime(found, (1000 + number, 1000 + number))
    again = Reader(path, position)
    assert again.lines() == ["3", "4", "5"]
    assert again.file.position().offset == 2


@pytest.mark.parametrize("text", ["n\n", "new\nlines\nmore\n"])
def test_a_file_that_is_rewritten_is_read_from_its_beginning(path, text):
    reader = Reader(path)
    assert reader.lines() == ["1", "2"]
    path.write_text("")
    path.write_text(text)  # shorter or longer than what was read
    assert reader.lines() == text.split()
    assert reader.counts == {"truncated": 1}


def test_a_file_that_vanishes_is_read_when_it_is_there_again(path):
    reader = Reader(path)
    assert reader.lines() == ["1", "2"]
    append(path, "3\n")
    path.unlink()
    assert reader.lines() == ["3"]
    path.write_text("4\n")
    assert reader.lines() == ["4"]
    missing = Reader(path.with_name("missing"))
    assert missing.lines() == [] and missing.counts == {"vanished": 1}


def test_a_stored_position_of_a_lost_file_is_counted(path):
    reader = Reader(path)
    reader.lines()
    position = reader.file.position()
    path.unlink()
    path.write_text("other\n")
    again = Reader(path, position)
    assert again.lines() == ["other"] and again.counts["lost"] == 1


def test_a_line_that_is_too_long_is_divided(path, monkeypatch):
    monkeypatch.setattr(followed_file, "MOST_LINE_BYTES", 10)
    monkeypatch.setattr(followed_file, "_PART_BYTES", 1)
    path.write_text("a" * 25 + "\nb\n")
    reader = Reader(path)
    lines = reader.lines()
    assert "".join(lines) == "a" * 25 + "b" and max(map(len, lines)) == 10
    assert reader.counts["split"] == 2


def test_a_file_may_be_read_from_its_end(path):
    reader = Reader(path, begins_at_end=True)
    assert reader.lines() == []
    append(path, "3\n")
    assert reader.lines() == ["3"]


def test_a_file_without_a_stored_position_is_read_again_from_where_it_began(path):
    reader = Reader(path, begins_at_end=True)
    append(path, "3\n")
    assert reader.lines() == ["3"]
    reader.file.seek(None)  # the transaction of the line was aborted
    assert reader.lines() == ["3"]
    path.rename(path.with_name("app.log.1"))
    path.write_text("4\n")
    reader.file.seek(None)
    assert reader.lines() == ["3", "4"]


def test_rotations_of_a_file_that_is_read_slowly_lose_no_line(path):
    reader = Reader(path)
    assert reader.lines() == ["1", "2"]
    append(path, "3\n")
    path.rename(path.with_name("app.log.2"))
    path.with_name("app.log.1").write_text("4\n")
    path.with_name("app.log.err").write_text("of another log\n")
    path.write_text("5\n")
    for number, name in enumerate(("app.log.2", "app.log.1", "app.log.err", "app.log")):
        os.utime(path.with_name(name), (1000 + number, 1000 + number))
    assert reader.lines() == ["3", "4", "5"]
    assert reader.counts == {"rotated": 2}


def test_a_rotation_while_an_older_file_is_read_loses_no_line(path):
    reader = Reader(path)
    assert reader.lines() == ["1", "2"]
    first, second, third = (path.with_name(f"app.log.{number}") for number in (3, 2, 1))
    path.rename(second)
    third.write_text("3\n")
    path.write_text("4\n")
    for number, found in enumerate((second, third, path)):
        os.utime(found, (1000 + number, 1000 + number))
    assert reader.file.read(1 << 20) == []  # the next file is open now
    assert [each.content for each in reader.file.read(1 << 20)] == [b"3"]
    for source, target in ((second, first), (third, second), (path, third)):
        source.rename(target)
    path.write_text("5\n")
    assert reader.lines() == ["4", "5"]


def test_a_path_that_is_a_link_to_the_newest_file_is_read_once(path):
    path.rename(path.with_name("app.log.2024-01-01"))
    path.symlink_to("app.log.2024-01-01")
    reader = Reader(path)
    assert reader.lines() == ["1", "2"]
    path.with_name("app.log.2024-01-02").write_text("3\n")
    path.unlink()
    path.symlink_to("app.log.2024-01-02")
    assert reader.lines() == ["3"]
    assert reader.counts == {"rotated": 1}


def test_a_log_with_a_longer_number_is_another_log(tmp_path):
    path = tmp_path / "node1"
    path.write_text("1\n")
    reader = Reader(path)
    assert reader.lines() == ["1"]
    path.rename(tmp_path / "node1.1")
    (tmp_path / "node10").write_text("of another log\n")
    path.write_text("2\n")
    assert reader.lines() == ["2"]


def test_a_file_that_cannot_be_opened_is_left_out(path):
    reader = Reader(path)
    assert reader.lines() == ["1", "2"]
    path.rename(path.with_name("app.log.2"))
    path.with_name("app.log.1").mkdir()
    os.mkfifo(path.with_name("app.log.0"))
    path.write_text("3\n")
    assert reader.lines() == ["3"]


def test_lines_before_a_read_error_are_returned(path, monkeypatch):
    reader = Reader(path)
    monkeypatch.setattr(followed_file, "MOST_LINE_BYTES", 1)
    monkeypatch.setattr(followed_file, "_PART_BYTES", 2)
    calls = []
    pread = os.pread

    def fails_at_the_third_call(*arguments):
        calls.append(arguments)
        if len(calls) == 3:  # the first one reads the beginning
            raise OSError(5, "Input/output error")
        return pread(*arguments)

    monkeypatch.setattr(followed_file.os, "pread", fails_at_the_third_call)
    assert [each.content for each in reader.file.read(1 << 20)] == [b"1"]
    assert [each.content for each in reader.file.read(1 << 20)] == [b"2"]
