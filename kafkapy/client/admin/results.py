"""What comes back from an operation on several things: a value or an error for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from kafkapy.errors import ApiError

K = TypeVar("K")
V = TypeVar("V")


class Results(Generic[K, V]):
    """`values` of what succeeded and `errors` of what did not, by key; no key is in both.  Not changed once returned.

    `results[key]` is the value or raises the key's error; `check()` gives all values or raises the first error.
    """

    def __init__(self) -> None:
        self.values: dict[K, V] = {}
        self.errors: dict[K, ApiError] = {}

    def __getitem__(self, key: K) -> V:
        """The value; ApiError if the operation failed for the key, KeyError if it was not asked for."""
        if key in self.errors:
            raise self.errors[key]
        return self.values[key]

    def __iter__(self) -> Iterator[K]:
        yield from self.values
        yield from self.errors

    def __len__(self) -> int:
        return len(self.values) + len(self.errors)

    def __repr__(self) -> str:
        return f"Results(values={self.values!r}, errors={self.errors!r})"

    def check(self) -> dict[K, V]:
        """All values; the first error (ApiError) if there is one."""
        for error in self.errors.values():
            raise error
        return self.values

    def put(self, key: K, value: V | ApiError) -> None:
        """Takes over what became of a key."""
        if isinstance(value, ApiError):
            self.errors[key] = value
        else:
            self.values[key] = value
