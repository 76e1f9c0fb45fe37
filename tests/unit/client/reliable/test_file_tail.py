"""The files that a tail follows: when it closes those whose names no longer exist."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.client.reliable.file_tail import FileTail

FORGETS_AFTER_S = 100.0


def test_a_file_that_appears_again_in_time_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now_s=1000.0)
    monkeypatch.setattr("kafkapy.client.reliable.file_tail.time", SimpleNamespace(monotonic=lambda: clock.now_s))
    path = tmp_path / "a.log"
    path.touch()
    tail = FileTail([str(tmp_path / "*.log")], "lines", {}, forgets_after_s=FORGETS_AFTER_S)
    tail._find_files()

    def followed_after(seconds: float) -> list[str]:
        clock.now_s += seconds
        tail._forget_files()
        return list(tail._files)

    path.unlink()
    assert followed_after(0) == [str(path)]
    path.touch()
    assert followed_after(FORGETS_AFTER_S - 1) == [str(path)]
    path.unlink()
    assert followed_after(1) == [str(path)], "the time since the first disappearance does not count"
    assert followed_after(FORGETS_AFTER_S - 1) == [str(path)]
    assert followed_after(1) == []


class MemoryProducer:
    """A producer that stores what is sent."""

    def __init__(self) -> None:
        self.config = {"transaction.timeout.ms": 10_000}
        self.sent: list[tuple[str, bytes, bytes | None, tuple[tuple[str, bytes], ...]]] = []

    def begin_transaction(self) -> None:
        pass

    def commit_transaction(self) -> None:
        pass

    def close(self, timeout: float) -> None:
        pass

    def send(self, topic: str, value: bytes, key: bytes | None = None, headers: Any = ()) -> None:
        self.sent.append((topic, value, key, headers))


def test_a_file_whose_name_is_not_utf_8_is_followed(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.log"
    Path(os.fsdecode(name)).write_text("line\n")
    producer = MemoryProducer()
    with FileTail([str(tmp_path / "*.log")], "lines", {}, name="n") as tail:
        tail._producer = producer  # type: ignore[assignment]
        assert tail.run_once() == 1
        (topic, value, _, headers), (_, _, key, _) = producer.sent
        assert (topic, value, headers) == ("lines", b"line", (("kafkapy.file", name),))
        assert key is not None and key.endswith(b":n:" + name)


def test_a_file_that_appears_later_is_read_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text("before\n")
    producer = MemoryProducer()
    with FileTail([str(tmp_path / "*.log")], "lines", {}, begins_at_end=True) as tail:
        tail._producer = producer  # type: ignore[assignment]
        assert tail.run_once() == 0
        (tmp_path / "new.log").write_text("first\n")
        tail._find_at_s = 0.0
        assert tail.run_once() == 1
        assert producer.sent[0][1] == b"first"


@pytest.mark.parametrize("begins_at_end", [True, False])
def test_a_rotated_file_that_the_pattern_matches_is_not_read_again(tmp_path: Path, begins_at_end: bool) -> None:
    path, rotated = tmp_path / "app.log", tmp_path / "app-2024.log"
    path.touch()
    producer = MemoryProducer()
    with FileTail([str(tmp_path / "*.log")], "lines", {}, name="n", begins_at_end=begins_at_end) as tail:
        tail._producer = producer  # type: ignore[assignment]
        assert tail.run_once() == 0
        path.write_text("1\n")
        assert tail.run_once() == 1
        path.rename(rotated)
        path.write_text("2\n")
        tail._find_at_s = 0.0
        assert sum(tail.run_once() for _ in range(4)) == 1
    lines = [value for topic, value, *_ in producer.sent if topic == "lines"]
    assert lines == [b"1", b"2"]
    keys = [key for topic, _, key, _ in producer.sent if topic != "lines"]
    assert os.fsencode(f"n:{rotated}") in [None if key is None else key[key.index(b":") + 1 :] for key in keys]
