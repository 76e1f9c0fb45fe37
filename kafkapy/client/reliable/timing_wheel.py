"""A hierarchical timing wheel: finds the entries that are due, where an entry is a number. This module uses no clock:
the time is an argument.

The wheel has four levels. A slot of the first level covers one tick, and a slot of each further level covers 256 slots
of the level below. These 256 slots are called a *turn* of the level below. The entries of a slot have to move to the
level below before the time that the slot covers begins. To move them all at that moment would take long. Therefore a
level has slots for two turns, the present one and the next one, and each call of `advance` moves only a limited number
of entries of the next slot.

The entries of a slot are a doubly linked list in two arrays, so that an entry can be removed from any place. The work
to add, remove or take an entry does not depend on the number of entries; an entry moves to a lower level at most three
times. An entry beyond the last level waits in the last slot and is placed again from there.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

_BITS = 8
_TURN = 1 << _BITS
_SLOTS = 2 * _TURN
_LEVELS = 4
# The nodes of the lists: one head for each slot, the head of the due entries, then the entries.
_DUE = _LEVELS * _SLOTS
_HEADS = _DUE + 1
_ALL_SLOTS = (1 << _SLOTS) - 1
# The entries of a level that move down at one call of `advance`, about a millisecond of work.
MOST_MOVED = 1000


class TimingWheel:
    """A set of entries, which are numbers from 0 up, ordered by due time. Not thread-safe.

    `due_ms_of(entry)` returns the due time of an entry in ms; due times are rounded up to multiples of `tick_ms`. The
    wheel takes eight bytes for each number up to the highest entry.
    """

    def __init__(self, now_ms: int, due_ms_of: Callable[[int], int], tick_ms: int = 8) -> None:
        self._tick_ms = tick_ms
        self._due_ms_of = due_ms_of
        self._tick = now_ms // tick_ms
        self._next = array("I", range(_HEADS))
        self._previous = array("I", range(_HEADS))
        # Bit n of a level is set if its slot n may have entries.
        self._occupied = [0] * _LEVELS
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, entry: int) -> None:
        """Adds an entry with the due time `due_ms_of(entry)`. The entry must not be in the wheel yet."""
        node = entry + _HEADS
        if node >= len(self._next):
            new = array("I", range(len(self._next), node + 1))
            self._next += new
            self._previous += new
        self._count += 1
        self._place(node)

    def put_back(self, entry: int) -> None:
        """Puts back an entry that `take` has returned. The next `take` returns it before all other due entries."""
        self._count += 1
        self._link(entry + _HEADS, self._next[_DUE])

    def remove(self, entry: int) -> None:
        """Removes an entry of the wheel."""
        self._count -= 1
        self._unlink(entry + _HEADS)

    def take(self, most: int) -> list[int]:
        """Removes and returns at most `most` of the entries that were due at the last call of `advance`, the first ones
        first.
        """
        found: list[int] = []
        while len(found) < most and (node := self._next[_DUE]) != _DUE:
            self._unlink(node)
            found.append(node - _HEADS)
        self._count -= len(found)
        return found

    def advance(self, now_ms: int) -> None:
        """Makes the entries that are due at `now_ms` available to `take`, in the order of their due times, rounded to
        ticks.
        """
        end = now_ms // self._tick_ms
        if not self._count:
            self._tick = max(self._tick, end)
            self._occupied = [0] * _LEVELS
        while self._tick < end:
            self._tick = min(end, self._next_tick() or end)
            for level in range(_LEVELS - 1, 0, -1):
                self._move_down(level, self._tick >> _BITS * level)
            self._append_to_due(self._tick & _SLOTS - 1)
        for level in range(1, _LEVELS):
            self._move_down(level, (self._tick >> _BITS * level) + 1, MOST_MOVED)

    def next_ms(self) -> int | None:
        """Returns a time in ms at which to call `advance` again; None if the wheel has no entries.

        The time is never later than the next due time. It may be earlier: `advance` then makes no entries available,
        and `next_ms` returns a later time afterwards. If `take` has not returned all due entries yet, the result is not
        later than the time of the last `advance`.
        """
        if not self._count:
            return None
        tick = self._tick if self._next[_DUE] != _DUE else self._next_tick()
        return None if tick is None else tick * self._tick_ms

    def _next_tick(self) -> int | None:
        """Returns the first tick after the present one at which a slot begins that may have entries.

        Returns None if all slots are empty.
        """
        ticks = []
        for level, bits in enumerate(self._occupied):
            if bits:
                # A level has entries of less than two turns, so that the order of its slots is known.
                slot = (self._tick >> _BITS * level) + 1
                index = slot & _SLOTS - 1
                turned = (bits >> index | bits << _SLOTS - index) & _ALL_SLOTS
                ticks.append(slot + (turned & -turned).bit_length() - 1 << _BITS * level)
        return min(ticks, default=None)

    def _place(self, node: int) -> None:
        """Adds an entry to the list of the slot of its due time, in the lowest level that has this slot.

        `node` is the entry's place in the linked lists: the entry plus the number of the lists' heads.
        """
        # The first tick at or after the due time.
        tick = -(-self._due_ms_of(node - _HEADS) // self._tick_ms)
        if tick <= self._tick:
            self._link(node, _DUE)
            return
        last = (self._tick >> _BITS * _LEVELS) + 2 << _BITS * _LEVELS  # the tick after the next turn of the last level
        tick = min(tick, last - 1)
        level = 0
        while (tick >> _BITS * (level + 1)) - (self._tick >> _BITS * (level + 1)) > 1:
            level += 1
        index = tick >> _BITS * level & _SLOTS - 1
        self._occupied[level] |= 1 << index
        self._link(node, level * _SLOTS + index)

    def _move_down(self, level: int, slot: int, most: int | None = None) -> None:
        """Moves the entries of a slot, at most `most`, to the levels below."""
        index = slot & _SLOTS - 1
        if not self._occupied[level] >> index & 1:
            return
        head = level * _SLOTS + index
        moved = 0
        while (node := self._next[head]) != head:
            if moved == most:
                return
            self._unlink(node)
            self._place(node)
            moved += 1
        self._occupied[level] &= ~(1 << index)

    def _append_to_due(self, head: int) -> None:
        """Moves the list of a slot of the first level to the end of the due entries."""
        first, last = self._next[head], self._previous[head]
        if first != head:
            end = self._previous[_DUE]
            self._next[end], self._previous[first] = first, end
            self._next[last], self._previous[_DUE] = _DUE, last
            self._next[head] = self._previous[head] = head
        self._occupied[0] &= ~(1 << head)

    def _link(self, node: int, following: int) -> None:
        """Inserts a node into a linked list before the node `following`.

        The lists are circular, so that a node that is inserted before the head of a list is the last one of the list.
        """
        before = self._previous[following]
        self._next[before] = self._previous[following] = node
        self._next[node], self._previous[node] = following, before

    def _unlink(self, node: int) -> None:
        before, following = self._previous[node], self._next[node]
        self._next[before], self._previous[following] = following, before
