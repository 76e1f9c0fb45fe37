"""A DeleteRecords request that waits until every replica has moved its log start offset."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.errors import Error
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.replica.partition import FindPartition
from kafkapy.types import TopicPartition

INVALID_LOW_WATERMARK = -1


class DeleteRecordsResult:
    """The result of DeleteRecords for one partition. `low_watermark` is the smallest log start offset of the replicas,
    or -1 if there is an error."""

    __slots__ = ("error", "low_watermark")

    def __init__(self, error: Error, low_watermark: int = INVALID_LOW_WATERMARK) -> None:
        self.error = error
        self.low_watermark = low_watermark


DeleteRecordsCallback = Callable[[dict[TopicPartition, DeleteRecordsResult]], None]


class DelayedDeleteRecords(DelayedOperation):
    """A DeleteRecords request that waits. It completes when, for each partition, the low watermark has reached the
    required offset or this broker no longer leads it.

    The result of a partition that waits is set to REQUEST_TIMED_OUT in advance, so that expiry needs no further step.
    """

    __slots__ = ("_find_partition", "_on_response", "_results", "_waiting")

    def __init__(
        self,
        timeout_ms: int,
        results: dict[TopicPartition, DeleteRecordsResult],
        required_offsets: dict[TopicPartition, int],
        find_partition: FindPartition,
        on_response: DeleteRecordsCallback,
    ) -> None:
        super().__init__(timeout_ms)
        self._results = results
        self._waiting = required_offsets
        self._find_partition = find_partition
        self._on_response = on_response
        for topic_partition in required_offsets:
            results[topic_partition] = DeleteRecordsResult(Error.REQUEST_TIMED_OUT)

    def try_complete(self) -> bool:
        for topic_partition, required_offset in tuple(self._waiting.items()):
            found = self._find_partition(topic_partition)
            if isinstance(found, Error):
                result = DeleteRecordsResult(found)
            elif not found.is_leader:
                result = DeleteRecordsResult(Error.NOT_LEADER_OR_FOLLOWER)
            elif found.low_watermark() >= required_offset:
                result = DeleteRecordsResult(Error.NONE, found.low_watermark())
            else:
                continue
            del self._waiting[topic_partition]
            self._results[topic_partition] = result
        return not self._waiting and self.force_complete()

    def on_complete(self) -> None:
        self._on_response(self._results)
