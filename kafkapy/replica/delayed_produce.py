"""A produce with acks=all that waits until the in-sync replicas have its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkapy.errors import Error
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.replica.append import PartitionResponse
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.replica.replica_manager import ReplicaManager

ProduceCallback = Callable[[Mapping[TopicPartition, PartitionResponse]], None]


class DelayedProduce(DelayedOperation):
    """Completes when every partition is settled: refused, no longer led here, or its high watermark high enough.

    A partition that waits already holds REQUEST_TIMED_OUT, so that expiry reports a timeout for those still waiting and
    for no others.
    """

    __slots__ = ("_on_response", "_replica_manager", "_responses", "_waiting")

    def __init__(
        self,
        timeout_ms: int,
        responses: Mapping[TopicPartition, PartitionResponse],
        required_offsets: dict[TopicPartition, int],
        replica_manager: ReplicaManager,
        on_response: ProduceCallback,
    ) -> None:
        """`required_offsets`: for each partition that was appended to, the high watermark that settles it."""
        super().__init__(timeout_ms)
        self._responses = responses
        self._waiting = required_offsets
        self._replica_manager = replica_manager
        self._on_response = on_response
        for topic_partition in required_offsets:
            responses[topic_partition].error = Error.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        for topic_partition, required_offset in tuple(self._waiting.items()):
            found = self._replica_manager.find_partition(topic_partition)
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
