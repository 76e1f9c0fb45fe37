"""Consumers whose last fetches met a batch that is larger than the bytes that the fetch permitted.

A broker sends such a batch nevertheless if it is the first one of the response (KIP-74), so that the consumer makes
progress, but slowly: each response has one such batch. Usual fetches are served by compiled code (the gate). For each
partition, the gate leaves one fetch with such a batch every NOTE_INTERVAL_MS milliseconds to the handler in Python,
which calls `note`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kafkapy.replica.fetch import FetchParams, FetchPartition, FetchResult
from kafkapy.replica.partition import Partition
from kafkapy.types import Clock, TopicPartition

NOTE_INTERVAL_MS = 1000
# The oldest entries are dropped beyond this number.
MOST_ENTRIES = 1000


class FetchClient(NamedTuple):
    """The client of a fetch: the id that it states, its principal as text, and the address of its host."""

    client_id: str
    user: str
    host: str


# Returns the client of the fetch in progress. Most fetches never call it, because it is needed only for a new session
# and for a batch that is larger than the fetch permits.
ClientOfFetch = Callable[[], FetchClient]


class LargeFetch(NamedTuple):
    """The last fetch of a client from a partition in which the first batch was larger than the fetch permitted.

    `offset` is the fetch offset, and `batch_bytes` the size of the batch. `partition_max_bytes` is the limit that the
    client has set for the partition (max.partition.fetch.bytes). `max_bytes` is the limit for the whole response: the
    smallest of the client's fetch.max.bytes, the broker's fetch.max.bytes, and the largest response that the client's
    quota ever allows.
    """

    client: FetchClient
    partition: TopicPartition
    offset: int
    batch_bytes: int
    partition_max_bytes: int
    max_bytes: int
    monotonic_ms: int


class LargeFetches:
    """The last LargeFetch of each client and partition, at most MOST_ENTRIES. Written by the reactor's thread."""

    def __init__(self) -> None:
        self._entries: dict[tuple[FetchClient, TopicPartition], LargeFetch] = {}

    def note(
        self,
        client: ClientOfFetch,
        params: FetchParams,
        results: Iterable[tuple[FetchPartition, FetchResult]],
        partitions: Mapping[TopicPartition, Partition],
        clock: Clock,
    ) -> None:
        """Stores a LargeFetch for each partition of a consumer's fetch whose first batch is larger than the fetch
        permits.

        For the next NOTE_INTERVAL_MS milliseconds, the compiled request path (the gate) then serves such fetches of
        this partition without Python. Does nothing if no batch was too large. `client` returns the client of the fetch.
        """
        for asked, result in results:
            size = len(result.records)
            if size <= min(asked.max_bytes, params.max_bytes):
                continue
            place, monotonic_ms, fetcher = asked.topic_partition, clock.monotonic_ms(), client()
            self._entries.pop((fetcher, place), None)
            self._entries[fetcher, place] = LargeFetch(
                fetcher, place, asked.fetch_offset, size, asked.max_bytes, params.max_bytes, monotonic_ms
            )
            if len(self._entries) > MOST_ENTRIES:
                del self._entries[next(iter(self._entries))]
            partition = partitions.get(place)
            if partition is not None:
                partition.large_fetch_noted_until_ms = monotonic_ms + NOTE_INTERVAL_MS

    def listed(self) -> list[LargeFetch]:
        """Returns the entries, the oldest first. Any thread may call it."""
        return list(self._entries.values())
