"""A produce request with acks=all that waits until the in-sync replicas have its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkapy.errors import Error
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.replica.partition import FindPartition
from kafkapy.replica.partition_response import PartitionResponse
from kafkapy.types import TopicPartition

ProduceCallback = Callable[[Mapping[TopicPartition, PartitionResponse]], None]


class DelayedProduce(DelayedOperation):
    """A produce request that waits. It completes when no partition is waiting.

    A partition stops waiting if its append was refused, if this broker no longer leads it, or if its high watermark has
    reached the required offset.

    The response of a partition that waits is set to REQUEST_TIMED_OUT in advance, so that expiry needs no further step.
    """

    __slots__ = ("_find_partition", "_on_response", "_responses", "_waiting")

    def __init__(
        self,
        timeout_ms: int,
        responses: Mapping[TopicPartition, PartitionResponse],
        required_offsets: dict[TopicPartition, int],
        find_partition: FindPartition,
        on_response: ProduceCallback,
    ) -> None:
        """Sets the error of each partition in `required_offsets` to REQUEST_TIMED_OUT, the error to return at expiry.

        `required_offsets` has, for each partition that was appended to, the high watermark for which the request waits.
        """
        super().__init__(timeout_ms)
        self._responses = responses
        self._waiting = required_offsets
        self._find_partition = find_partition
        self._on_response = on_response
        for topic_partition in required_offsets:
            responses[topic_partition].error = Error.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        for topic_partition, required_offset in tuple(self._waiting.items()):
            found = self._find_partition(topic_partition)
            if isinstance(found, Error):
                error = found
            else:
                has_enough, error = found.check_enough_replicas_reach_offset(required_offset)
                if not has_enough and not error:
                    continue
            del self._waiting[topic_partition]
            self._responses[topic_partition].error = error
        return not self._waiting and self.force_complete()

    def on_complete(self) -> None:
        self._on_response(self._responses)
