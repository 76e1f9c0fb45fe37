"""The result of an operation on several keys: a value or an error for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from kafkapy.errors import ApiError

K = TypeVar("K")
V = TypeVar("V")


class Results(Generic[K, V]):
    """The outcome of an operation for each key: a value in `values` or an ApiError in `errors`.

    Immutable once returned. `results[key]` returns the key's value or raises its error; `check()` returns all values or
    raises the first error.
    """

    def __init__(self) -> None:
        self.values: dict[K, V] = {}
        self.errors: dict[K, ApiError] = {}

    def __getitem__(self, key: K) -> V:
        """Returns the key's value; raises its ApiError if the operation has failed for it.

        Raises KeyError if the key was not passed to the operation.
        """
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
        """Returns all values by key; raises the first ApiError if there is one."""
        for error in self.errors.values():
            raise error
        return self.values

    def put(self, key: K, value: V | ApiError) -> None:
        """Stores the value or the error of a key."""
        if isinstance(value, ApiError):
            self.errors[key] = value
        else:
            self.values[key] = value
