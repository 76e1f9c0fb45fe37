"""The files that a tail follows: when it closes those whose names no longer exist."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

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
