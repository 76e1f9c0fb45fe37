"""The reactor's `schedule` without a reactor; only the test advances the time."""

from __future__ import annotations

from tests.mock_clock import MockClock


class MockEntry:
    def __init__(self, due_ms, callback):
        self.due_ms = due_ms
        self.callback = callback
        self.is_cancelled = False

    def cancel(self):
        self.is_cancelled = True


class MockScheduler:
    """Runs callbacks in the order of their due times, and sets `clock` to exactly those times."""

    def __init__(self, clock=None):
        self.clock = clock or MockClock()
        self._entries = []

    def schedule(self, delay_ms, callback):
        entry = MockEntry(self.clock.monotonic_ms() + delay_ms, callback)
        self._entries.append(entry)
        return entry

    def pending(self):
        return sum(not entry.is_cancelled for entry in self._entries)

    def advance(self, elapsed_ms):
        end_ms = self.clock.monotonic_ms() + elapsed_ms
        while True:
            self._entries = [entry for entry in self._entries if not entry.is_cancelled]
            due = min(self._entries, key=lambda entry: entry.due_ms, default=None)
            if due is None or due.due_ms > end_ms:
                break
            self._entries.remove(due)
            self.clock.advance(max(0, due.due_ms - self.clock.monotonic_ms()))
            due.callback()
        self.clock.advance(end_ms - self.clock.monotonic_ms())
