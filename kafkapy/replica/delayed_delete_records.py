"""A DeleteRecords request that waits until every replica has moved its log start offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkapy.errors import Error
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.replica.replica_manager import ReplicaManager

INVALID_LOW_WATERMARK = -1


class DeleteRecordsResult:
    """The answer for one partition: the low watermark reached, -1 with an error."""

    __slots__ = ("error", "low_watermark")

    def __init__(self, error: Error, low_watermark: int = INVALID_LOW_WATERMARK) -> None:
        self.error = error
        self.low_watermark = low_watermark


DeleteRecordsCallback = Callable[[dict[TopicPartition, DeleteRecordsResult]], None]


class DelayedDeleteRecords(DelayedOperation):
    """Completes when each partition's low watermark has reached the offset asked for, or it is not led here any more.

    As with DelayedProduce, a waiting partition already holds REQUEST_TIMED_OUT.
    """

    __slots__ = ("_on_response", "_replica_manager", "_results", "_waiting")

    def __init__(
        self,
        timeout_ms: int,
        results: dict[TopicPartition, DeleteRecordsResult],
        required_offsets: dict[TopicPartition, int],
        replica_manager: ReplicaManager,
        on_response: DeleteRecordsCallback,
    ) -> None:
        super().__init__(timeout_ms)
        self._results = results
        self._waiting = required_offsets
        self._replica_manager = replica_manager
        self._on_response = on_response
        for topic_partition in required_offsets:
            results[topic_partition] = DeleteRecordsResult(Error.REQUEST_TIMED_OUT)

    def try_complete(self) -> bool:
        for topic_partition, required_offset in tuple(self._waiting.items()):
            found = self._replica_manager.find_partition(topic_partition)
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
