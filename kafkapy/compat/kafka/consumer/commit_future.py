"""The future of an asynchronous commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafkapy.compat.kafka.future import Future
from kafkapy.compat.kafka.structs import OffsetAndMetadata, TopicPartition


class OffsetCommitResponse(NamedTuple):
    """The outcome of a commit that has succeeded.

    `topics` has a pair (name, partitions) for each topic; `partitions` are pairs of a partition number and the error
    code 0.
    """

    topics: list[tuple[str, list[tuple[int, int]]]]


class CommitFuture(Future):
    """The outcome of an asynchronous commit. Only the thread that uses the consumer may use the future.

    Reading `is_done` of an unfinished commit calls `call_back`, which runs the callbacks of all finished commits.
    """

    def __init__(
        self,
        call_back: Callable[[], None],
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        callback: Callable[[Any, Any], object],
    ) -> None:
        super().__init__()
        self._call_back = call_back
        self._offsets = offsets
        self._callback = callback

    @property
    def is_done(self) -> bool:
        if not self._is_done:
            self._call_back()
        return self._is_done

    def finish(self, error: BaseException | None) -> None:
        """Sets the outcome and calls the callback of the commit; `error` is None after a success."""
        if error is not None:
            self._callback(self._offsets, error)
            self.failure(error)
            return
        topics: dict[str, list[tuple[int, int]]] = {}
        for topic, partition in self._offsets:
            topics.setdefault(topic, []).append((partition, 0))
        response = OffsetCommitResponse(list(topics.items()))
        self._callback(self._offsets, response)
        self.success(response)
