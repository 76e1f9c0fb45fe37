"""Counts of errors in responses, by API and error."""

from __future__ import annotations


class RequestErrors:
    """Counts since the start. APIs and errors are numbers from tables, which bounds the number of counts.

    The reactor's thread counts, any thread may copy.
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
