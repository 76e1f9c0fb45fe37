"""Counts of errors in responses, by API and error."""

from __future__ import annotations


class RequestErrors:
    """The numbers of errors since the start. The reactor's thread counts, any thread may copy.

    APIs and errors are numbers from tables, which bounds the size of this table.
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], int] = {}

    def count(self, api_key: int, error_code: int) -> None:
        key = (api_key, error_code)
        self._counts[key] = self._counts.get(key, 0) + 1

    def counts(self) -> dict[tuple[int, int], int]:
        """Returns a copy of the counts by (API key, error code). Any thread."""
        return self._counts.copy()
