"""A fetch that is served in Python and waits for data. When it completes, for any reason, the log is read again.

Most fetches are served by the data gate, the compiled code that serves usual requests without the interpreter lock;
they wait as a HeldFetch instead. A DelayedFetch is used for all other fetches, which Python serves: fetches that open
or change a session, read_committed fetches of logs that may have open or aborted transactions, and every fetch while
the gate is switched off. docs/decisions/held-fetch.md compares the two classes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.replica.delayed_operations import FetchOperation
from kafkapy.replica.fetch import FetchParams, FetchPartition, FetchResult, LogRead
from kafkapy.replica.partition import NO_EPOCH, FindPartition, Partition
from kafkapy.storage.log_results import LogOffsetMetadata

FetchCallback = Callable[[list[tuple[FetchPartition, FetchResult]]], None]
Waiting = list[tuple[FetchPartition, LogOffsetMetadata]]


class DelayedFetch(FetchOperation):
    """A fetch that waits. It completes when one of these conditions holds; all but G are tested for each partition.

    The letters are those of Kafka's DelayedFetch.scala:

    A, B  this broker no longer leads the partition, and the fetch may only be served by a leader
    C     this broker does not know the partition
    D     the log directory of the partition went offline, or its log cannot be read
    E     the leader epoch of the request is fenced
    F     the fetch offset is no longer on the segment of the last readable offset (the log rolled, or was truncated)
    G     the bytes that became readable, over all partitions, reach the minimum
    H     the log was truncated below the end of the fetcher's log (its fetch offset)

    Partitions whose records are withheld from the follower by a throttle (KIP-73) do not count in F and G.
    """

    __slots__ = ("_by_key", "_find_partition", "_on_response", "_params", "_partitions", "_read_again")

    def __init__(
        self,
        params: FetchParams,
        partitions: Waiting,
        find_partition: FindPartition,
        read_again: Callable[[FetchParams, list[FetchPartition]], LogRead],
        on_response: FetchCallback,
    ) -> None:
        """Makes an operation that waits for at most `max_wait_ms` of `params`.

        `partitions` has each partition with the position of its fetch offset in the log, as the first read has found
        it. On completion, `read_again` reads all partitions once more, and `on_response` is called with the results.
        """
        super().__init__(params.max_wait_ms, is_from_follower=params.is_from_follower)
        self._params = params
        self._partitions = partitions
        self._by_key: dict[Hashable, tuple[FetchPartition, LogOffsetMetadata]] = {}  # filled by the first event
        self._find_partition = find_partition
        self._read_again = read_again
        self._on_response = on_response

    def try_complete(self) -> bool:
        readable = 0
        for asked, start in self._partitions:
            added = self._readable(asked, start)
            if added is None:
                return self.force_complete()
            readable += added
        return readable >= self._params.min_bytes and self.force_complete()  # G

    def try_complete_after(self, key: Hashable) -> bool:
        """Tries to complete the fetch after an event of the partition `key`; returns whether it is complete now.

        If the event made no record of `key` readable, the other partitions are not tested. This limits the work when
        each of a fetch's thousands of partitions has an event, as after an election: if every event tested all
        partitions, the number of tests would be the square of the number of partitions.
        """
        if not self._by_key:
            self._by_key = {each[0].topic_partition: each for each in self._partitions}
        found = self._by_key.get(key)
        is_named_once = len(self._by_key) == len(self._partitions)
        if found is not None and is_named_once and self._readable(*found) == 0:
            return False
        return self.try_complete()

    def _readable(self, asked: FetchPartition, start: LogOffsetMetadata) -> int | None:
        """Returns the number of bytes of a partition that have become readable since the first read; 0 if a throttle
        withholds them. `start` is the position of the fetch offset.

        Returns None if the fetch has to complete at once, because the partition cannot be read here any longer, its
        leader epoch has changed, or the log was truncated or rolled (A to F and H in the list of the class).
        """
        found = self._find_partition(asked.topic_partition)
        if isinstance(found, Error):  # B, C, D
            return None
        end_offset = found.end_offset(self._params.isolation)
        if self._has_changed_role(found, asked):  # A, E, H
            return None
        if start.offset > end_offset:  # F
            return None
        if start.offset == end_offset or (
            self._params.is_from_follower and found.is_follower_throttled(self._params.replica_id)
        ):
            return 0
        try:
            end = found.log.offset_metadata(end_offset)
        except (ApiError, StorageError):  # D; the error is in the response, for which the log is read again
            return None
        if start.segment_base_offset < end.segment_base_offset:  # F
            return None
        return min(found.log.position_delta(start, end), asked.max_bytes)

    def _has_changed_role(self, partition: Partition, asked: FetchPartition) -> bool:
        if asked.current_leader_epoch not in (NO_EPOCH, partition.leader_epoch):
            return True
        if self._params.only_leader and not partition.is_leader:
            return True
        if asked.last_fetched_epoch == NO_EPOCH:
            return False
        end = partition.log.end_offset_for_epoch(asked.last_fetched_epoch)
        return end.offset < asked.fetch_offset or end.epoch < asked.last_fetched_epoch

    def on_complete(self) -> None:
        asked = [asked for asked, _ in self._partitions]
        self._on_response(self._read_again(self._params, asked).results)
