"""Counts of errors in responses, by API and error."""

from __future__ import annotations


class RequestErrors:
    """The numbers of errors in responses since the start, by API key and error code.

    Only the thread that serves requests may call `count`. The number of APIs and of errors is fixed, which bounds the
    size of this table.
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], int] = {}

    def count(self, api_key: int, error_code: int) -> None:
        key = (api_key, error_code)
        self._counts[key] = self._counts.get(key, 0) + 1

    def counts(self) -> dict[tuple[int, int], int]:
        """Returns a copy of the counts. A key is a pair: API key and error code. May be called by any thread."""
        return self._counts.copy()
