"""A fetch of a share group's member, which may wait for records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from kafkapy._core.bytes.segment_file import FileRange
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.named_tuple import NamedTuple
from kafkapy.replica.delayed_operations import FetchOperation
from kafkapy.replica.share.in_flight import Acquired
from kafkapy.replica.share.persister import SharePartitionKey
from kafkapy.replica.share.share_partition import SharePartition, ShareStatus

logger = logging.getLogger("kafka.server.share.SharePartitionManager")


class ShareResult(NamedTuple):
    """The records that a fetch has acquired in one share partition, or the error.

    `is_from_partition` is False if the request was refused before the partition was looked up.
    """

    key: SharePartitionKey
    error: Error = Error.NONE
    records: FileRange | bytes = b""
    acquired: Sequence[Acquired] = ()
    is_from_partition: bool = True


class ShareFetch(NamedTuple):
    """The parameters of a fetch. The object does not change after its construction.

    `on_results` is called once, with the results of the share partitions that are loaded. Records are acquired in
    ranges of about `batch_size`; if `is_exact`, no more than `max_records` are acquired. Nothing is acquired when
    `is_wanted` returns False, because the member's session has ended while the fetch waited.
    """

    member: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_exact: bool
    is_wanted: Callable[[], bool]
    on_results: Callable[[list[ShareResult]], None]


class DelayedShareFetch(FetchOperation):
    """A share fetch that waits. It completes when records of at least `min_bytes` bytes can be acquired, or a share
    partition has an error.

    At the deadline it acquires the records that are available.
    """

    __slots__ = ("_fetch", "_partitions")

    def __init__(self, fetch: ShareFetch, partitions: Sequence[SharePartition]) -> None:
        super().__init__(fetch.max_wait_ms, is_from_follower=False)
        self._fetch = fetch
        self._partitions = partitions

    def try_complete(self) -> bool:
        missing_bytes = max(1, self._fetch.min_bytes)
        for each in self._partitions:
            if each.status in (ShareStatus.FENCED, ShareStatus.FAILED):
                return self.force_complete()
            if not each.can_acquire():
                continue
            try:
                missing_bytes -= each.readable_bytes(missing_bytes)
            except (ApiError, StorageError):  # the records are read again, and the response has the error
                return self.force_complete()
            if missing_bytes <= 0:
                return self.force_complete()
        for each in self._partitions:
            each.partition.watch_fetch(is_from_follower=False)
        return False

    def on_complete(self) -> None:
        self._fetch.on_results(read_share_partitions(self._fetch, self._partitions))


def read_share_partitions(fetch: ShareFetch, partitions: Sequence[SharePartition]) -> list[ShareResult]:
    """Acquires records in the order of the share partitions, and returns the result of each one that is not loading.

    `max_bytes` of the fetch is divided evenly between the share partitions that can acquire records.
    """
    if not fetch.is_wanted():
        return []
    results = []
    acquirable = sum(each.can_acquire() for each in partitions)
    records_left = fetch.max_records
    for each in partitions:
        if each.status in (ShareStatus.FENCED, ShareStatus.FAILED):
            results.append(ShareResult(each.key, each.error))
        elif each.is_active and (records_left <= 0 or fetch.max_bytes <= 0 or not each.can_acquire()):
            results.append(ShareResult(each.key))
        elif each.is_active:
            max_bytes = max(1, fetch.max_bytes // acquirable)
            try:
                records, acquired = each.fetch(
                    fetch.member, max_bytes, records_left, fetch.batch_size, is_exact=fetch.is_exact
                )
            except ApiError as error:
                results.append(ShareResult(each.key, error.error))
                continue
            except StorageError as error:
                logger.error("Share fetch from %s failed: %s", each.key, error)
                results.append(ShareResult(each.key, Error.KAFKA_STORAGE_ERROR))
                continue
            records_left -= sum(one.last - one.first + 1 for one in acquired)
            results.append(ShareResult(each.key, Error.NONE, records, acquired))
    return results
