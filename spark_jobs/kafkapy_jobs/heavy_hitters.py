"""Counts of the most frequent terms in bounded memory, with a bound on the error: summaries of Misra and Gries.

A summary of capacity m has at most m terms. The true count of each term is between its count and its count plus
`error`, and the true count of a term that is not in the summary is at most `error`. Of n counted occurrences, `error`
is at most n / (m + 1). Summaries can be merged in any order and any grouping, with the same bound (Agarwal et al.,
Mergeable Summaries, 2012), so that each task summarises its records first.

Pure, and without imports of this library, because it runs on executors.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable


class Summary:
    """The most frequent terms with their counts, and the bound on the error of the counts. Not thread-safe."""

    def __init__(self, capacity: int) -> None:
        """`capacity` is the largest number of terms that the summary keeps."""
        self.capacity = capacity
        self.counts: dict[str, int] = {}
        self.error = 0
        self.total = 0

    def add(self, term: str, count: int = 1) -> None:
        """Counts a term. The memory may grow to twice the capacity, until the summary is pruned."""
        self.counts[term] = self.counts.get(term, 0) + count
        self.total += count
        if len(self.counts) > 2 * self.capacity:
            self.prune()

    def merge(self, counts: Iterable[tuple[str, int]], error: int, total: int) -> None:
        """Adds the content of another summary: its terms with their counts, its error and its number of occurrences."""
        for term, count in counts:
            self.counts[term] = self.counts.get(term, 0) + count
        self.error += error
        self.total += total
        if len(self.counts) > 2 * self.capacity:
            self.prune()

    def prune(self) -> None:
        """Reduces the summary to its capacity: subtracts the greatest count that does not fit from all counts."""
        if len(self.counts) <= self.capacity:
            return
        excess = heapq.nlargest(self.capacity + 1, self.counts.values())[-1]
        self.counts = {term: count - excess for term, count in self.counts.items() if count > excess}
        self.error += excess

    def top(self, limit: int) -> list[tuple[str, int]]:
        """Returns the `limit` most frequent terms with the lower bounds of their counts.

        Of terms with equal counts, the greater term comes first.
        """
        ordered = ((count, term.encode("utf-8", "surrogatepass"), term) for term, count in self.counts.items())
        return [(term, count) for count, _, term in heapq.nlargest(limit, ordered)]

    def to_json(self) -> str:
        """Returns the pruned summary as text."""
        self.prune()
        return json.dumps([self.capacity, self.error, self.total, self.counts], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """Returns the summary that `to_json` wrote."""
        made = cls(0)
        made.capacity, made.error, made.total, made.counts = json.loads(text)
        return made
