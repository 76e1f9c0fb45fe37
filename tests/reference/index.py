"""Offset and time index as plain lists: the oracle for _core.offset_index and _core.time_index."""


class Entries:
    """Sorted (key, value) pairs; lookups below the first return `base`."""

    def __init__(self, base: tuple[int, int]) -> None:
        self.base = base
        self.entries: list[tuple[int, int]] = []

    def lookup(self, key: int) -> tuple[int, int]:
        return ([self.base] + [entry for entry in self.entries if entry[0] <= key])[-1]

    def truncate(self, column: int, offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry[column] < offset]
