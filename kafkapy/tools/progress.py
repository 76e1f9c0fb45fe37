"""A progress bar on standard error, which is shown only on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Self, TextIO

_PAUSE_S = 0.1
_BAR_WIDTH = 24


class Progress:
    """A progress bar. Not thread-safe.

    `total` is the count at which the bar is full, in units of `unit`. `advance` may be called for each record; it
    writes at most ten times a second. The bar is erased at the end, so that no part of it remains between lines of
    output.
    """

    def __init__(self, total: int, unit: str, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_shown = total > 0 and self._stream.isatty()
        self._total = total
        self._unit = unit
        self._done = 0
        self._started = self._written = time.monotonic() if self._is_shown else 0.0

    def advance(self, count: int = 1) -> None:
        """Advances the bar by `count`."""
        self._done += count
        if not self._is_shown:
            return
        now = time.monotonic()
        if now - self._written >= _PAUSE_S:
            self._written = now
            self._stream.write(f"\r{self._line(now)}\x1b[K")
            self._stream.flush()

    def clear(self) -> None:
        """Erases the bar, so that a line of output can be printed; a later `advance` draws the bar again."""
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _line(self, now: float) -> str:
        share = min(self._done / self._total, 1.0)
        filled = int(share * _BAR_WIDTH)
        rate = self._done / max(now - self._started, 1e-9)
        left_s = (self._total - self._done) / rate if rate else 0.0
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        line = (
            f"[{bar}] {share:4.0%} {self._done:,} of {self._total:,} {self._unit}, {rate:,.0f}/s, {left_s:.0f} s left"
        )
        return line[: max(shutil.get_terminal_size().columns - 1, 20)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
