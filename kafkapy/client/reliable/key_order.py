"""The keys whose records wait in retry topics: a later record with such a key waits behind the earlier ones. This
module does no I/O.
"""

from __future__ import annotations

Place = tuple[str, int]


class WaitingKeys:
    """Counts the waiting records of each key, by partition of the original topic and level of the retry chain.

    A `place` is the original topic and the number of the partition. A record may be handled if no record with its key
    waits at a higher level. Otherwise the record moves to the next level, so that it stays behind the earlier ones:
    every retry topic is read in order, and records only move to higher levels. The changes of a transaction are
    reverted by `roll_back`, unless `confirm` was called before.
    """

    def __init__(self, most_keys: int) -> None:
        self._most_keys = most_keys
        self._waiting: dict[Place, dict[bytes, dict[int, int]]] = {}
        self._changes: list[tuple[Place, bytes, int, int]] = []
        self.key_count = 0

    def is_full_for(self, place: Place, key: bytes | None) -> bool:
        """Returns whether the key is new and the number of keys is at its limit, so that the partition of its record
        has to wait.
        """
        if key is None or self.key_count < self._most_keys:
            return False
        return key not in self._waiting.get(place, ())

    def is_behind(self, place: Place, key: bytes | None, level: int) -> bool:
        """Returns whether a record with this key waits at a higher level than `level`."""
        counts = None if key is None else self._waiting.get(place, {}).get(key)
        return counts is not None and max(counts) > level

    def change(self, place: Place, key: bytes | None, level: int, amount: int) -> None:
        """Adds `amount`, which is 1 or -1, to the number of records with this key that wait at a level.

        Ignores level 0, which is the original topic, and records without a key.
        """
        if key is not None and level > 0:
            self._apply(place, key, level, amount)
            self._changes.append((place, key, level, amount))

    def confirm(self) -> None:
        """Keeps all changes, after their transaction was committed."""
        self._changes.clear()

    def roll_back(self) -> None:
        """Reverts the changes since the last call of `confirm`."""
        for place, key, level, amount in reversed(self._changes):
            self._apply(place, key, level, -amount)
        self._changes.clear()

    def forget(self, place: Place) -> None:
        """Removes the keys of a partition that is no longer assigned."""
        self.key_count -= len(self._waiting.pop(place, ()))

    def _apply(self, place: Place, key: bytes, level: int, amount: int) -> None:
        keys = self._waiting.setdefault(place, {})
        counts = keys.get(key)
        if counts is None:
            if amount < 0:
                return  # the record was written before the topics were read, for example by another program
            counts = keys[key] = {}
            self.key_count += 1
        count = counts.get(level, 0) + amount
        if count > 0:
            counts[level] = count
            return
        counts.pop(level, None)
        if not counts:
            del keys[key]
            self.key_count -= 1
