"""The dependencies of logs, in one object that all logs of a broker share."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.types import Clock

Work = Callable[[], None]


def run_now(work: Work) -> None:
    """Runs work at once, on the caller's thread."""
    work()


class LogPorts:
    """The file system, the clock and the callbacks that logs use. The object does not change after its construction.

    `run_in_background(work)` runs work soon, on any thread; by default it runs the work at once. `schedule(delay_ms,
    work)` runs work after a delay, on any thread. `on_io_error(directory, error)` is called before StorageError is
    raised, and takes the log directory offline. `write_lowered_offsets(directory, starts_earlier)` is called when a
    truncation has lowered the recovery point of a log in the directory, or, if `starts_earlier` is True, its start
    offset. Nothing is appended to the log before the call returns. `producer_expiration_ms()` returns
    `producer.id.expiration.ms`, which may change while the broker runs.
    """

    __slots__ = (
        "_producer_expiration_ms",
        "clock",
        "filesystem",
        "on_io_error",
        "run_in_background",
        "schedule",
        "write_lowered_offsets",
    )

    def __init__(
        self,
        filesystem: Filesystem,
        clock: Clock,
        *,
        schedule: Callable[[int, Work], object],
        on_io_error: Callable[[str, Exception], None],
        run_in_background: Callable[[Work], None] = run_now,
        write_lowered_offsets: Callable[[LogDirectory, bool], object] = lambda directory, starts_earlier: None,
        producer_expiration_ms: Callable[[], int] = lambda: 86_400_000,
    ) -> None:
        self.filesystem = filesystem
        self.clock = clock
        self.schedule = schedule
        self.on_io_error = on_io_error
        self.run_in_background = run_in_background
        self.write_lowered_offsets = write_lowered_offsets
        self._producer_expiration_ms = producer_expiration_ms

    @property
    def producer_expiration_ms(self) -> int:
        return self._producer_expiration_ms()
