"""A hierarchical timing wheel over numbers of entries. Pure: the time is an argument.

The wheel has four levels of 256 slots. A slot of the first level covers one tick, a slot of each further level the
whole level below. Adding an entry, and taking one that is due, cost a constant number of steps; an entry moves to a
lower level at most three times. An entry beyond the last level waits in its last slot and is placed again from there.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

_BITS = 8
_SLOTS = 1 << _BITS
_MASK = _SLOTS - 1
_LEVELS = 4


class TimingWheel:
    """The entries by due time; `due_ms_of(entry)` returns the due time of an entry in ms. Not thread-safe.

    Entries are numbers below 2**32, and take eight bytes each at most. Due times are rounded up to multiples of
    `tick_ms`.
    """

    def __init__(self, now_ms: int, due_ms_of: Callable[[int], int], tick_ms: int = 8) -> None:
        self._tick_ms = tick_ms
        self._due_ms_of = due_ms_of
        self._tick = now_ms // tick_ms
        self._slots = [[array("I") for _ in range(_SLOTS)] for _ in range(_LEVELS)]
        self._counts = [0] * _LEVELS
        self._due = array("I")  # entries that were due when they were added

    def __len__(self) -> int:
        return sum(self._counts) + len(self._due)

    def add(self, entry: int) -> None:
        """Adds an entry, whose due time is `due_ms_of(entry)`."""
        self._place(entry, self._tick_of(entry))

    def advance(self, now_ms: int) -> list[int]:
        """Removes the entries that are due at `now_ms` and returns them in the order of their due times, rounded to
        ticks.
        """
        due = list(self._due)
        del self._due[:]
        end = now_ms // self._tick_ms
        while self._tick < end:
            if not any(self._counts):
                self._tick = end
                break
            if not self._counts[0]:
                # Nothing happens before the boundary at which the lowest level with entries is emptied.
                level = next(index for index in range(_LEVELS) if self._counts[index])
                self._tick = min(end, self._tick | (1 << _BITS * level) - 1)
                if self._tick == end:
                    break
            self._tick += 1
            self._cascade()
            slot = self._slots[0][self._tick & _MASK]
            if slot:
                due += slot
                self._counts[0] -= len(slot)
                del slot[:]
        if self._due:
            due += self._due
            del self._due[:]
        return due

    def next_ms(self) -> int | None:
        """Returns a time in ms at which to call `advance` again, not later than the next due time; None without
        entries.

        It may be earlier than the next due time; `advance` then returns no entries, but the next result is later.
        """
        if self._due:
            return self._tick * self._tick_ms
        if not any(self._counts):
            return None
        # At the next boundary entries of higher levels move to the first one.
        boundary = (self._tick | _MASK) + 1 if any(self._counts[1:]) else self._tick + _SLOTS
        slots = self._slots[0]
        tick = next((each for each in range(self._tick + 1, boundary) if slots[each & _MASK]), boundary)
        return tick * self._tick_ms

    def _tick_of(self, entry: int) -> int:
        """Returns the number of the first tick at or after the entry's due time."""
        return -(-self._due_ms_of(entry) // self._tick_ms)

    def _place(self, entry: int, tick: int) -> None:
        if tick <= self._tick:
            self._due.append(entry)
            return
        for level in range(_LEVELS):
            # A level holds the ticks of the present turn of its wheel, and of the next one up to its own slot.
            if (tick >> _BITS * level) - (self._tick >> _BITS * level) < _SLOTS:
                self._slots[level][tick >> _BITS * level & _MASK].append(entry)
                self._counts[level] += 1
                return
        farthest = (self._tick >> _BITS * (_LEVELS - 1)) + _MASK
        self._slots[_LEVELS - 1][farthest & _MASK].append(entry)
        self._counts[_LEVELS - 1] += 1

    def _cascade(self) -> None:
        """Moves the entries of the slots that begin at the present tick to lower levels, the highest level first."""
        for level in range(_LEVELS - 1, 0, -1):
            if self._tick & (1 << _BITS * level) - 1:
                continue
            slots = self._slots[level]
            index = self._tick >> _BITS * level & _MASK
            entries, slots[index] = slots[index], array("I")
            self._counts[level] -= len(entries)
            for entry in entries:
                self._place_again(entry)

    def _place_again(self, entry: int) -> None:
        tick = self._tick_of(entry)
        if tick == self._tick:
            self._slots[0][tick & _MASK].append(entry)
            self._counts[0] += 1
        else:
            self._place(entry, tick)
