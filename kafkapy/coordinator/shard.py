"""The interface between the runtime and a coordinator's state of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from kafkapy.coordinator.record import CoordinatorRecord, CoordinatorResult
from kafkapy.types import Clock

# About the largest batch of records that need not be written together. A batch must be smaller than max.message.bytes.
LARGEST_PART_BYTES = 64 * 1024
_FRAMING_BYTES_PER_RECORD = 32


class CoordinatorShard(Protocol):
    """The state of a coordinator for one partition of its internal topic. Only the thread that owns it may use it."""

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Applies one record of the log; `producer_id` is -1 outside transactions."""

    def replay_end_of_transaction(self, offset: int, producer_id: int, committed: bool) -> None:
        """Applies the marker at `offset` that ends the producer's transaction; `committed` is False if the transaction
        is aborted."""

    def on_loaded(self) -> None:
        """Handles the end of the load: the whole log has been replayed, and timers may be started from now on."""

    def on_unloaded(self) -> None:
        """Responds NOT_COORDINATOR to the requests of the shard that wait for an event, and ends the shard's background
        work. Called when this broker no longer leads the partition."""


class ShardContext(Protocol):
    """The interface through which a shard runs operations, now or at a later time. The runtime implements it."""

    clock: Clock
    leader_epoch: int

    def run(self, operation: Callable[[], CoordinatorResult[Any]]) -> None:
        """Runs `operation` now and appends the records that it returns; its response is dropped."""

    def schedule(self, key: str, delay_ms: int, operation: Callable[[], CoordinatorResult[Any]]) -> None:
        """Calls `run(operation)` after `delay_ms`; cancels the earlier timer with the same key, if there is one."""

    def schedule_unless_scheduled(
        self, key: str, delay_ms: int, operation: Callable[[], CoordinatorResult[Any]]
    ) -> None:
        """Calls `run(operation)` after `delay_ms`, unless the key already has a timer."""

    def is_scheduled(self, key: str) -> bool:
        """Returns whether the key has a timer."""

    def cancel(self, key: str) -> None:
        """Cancels the timer of the key, if there is one."""

    def committed_offset(self) -> int:
        """Returns the high watermark of the shard's partition: records below it are committed, and readers may see
        them."""


def run_in_parts(context: ShardContext, records: Sequence[CoordinatorRecord]) -> CoordinatorResult[None]:
    """Appends records, of which some may be written and others not, in batches of limited size, however many they are.

    Runs all batches but the last one, and returns the last one as the result of the caller's operation.
    """
    parts = list(in_parts(records))
    for part in parts[:-1]:
        context.run(lambda part=part: CoordinatorResult(part))  # type: ignore[misc]
    return CoordinatorResult(parts[-1] if parts else ())


def in_parts(records: Sequence[CoordinatorRecord]) -> Iterator[list[CoordinatorRecord]]:
    """Yields the records in lists, in order; each is as long as it can be with at most about LARGEST_PART_BYTES."""
    part: list[CoordinatorRecord] = []
    size = 0
    for record in records:
        added = len(record.key) + len(record.value or b"") + _FRAMING_BYTES_PER_RECORD
        if part and size + added > LARGEST_PART_BYTES:
            yield part
            part, size = [], 0
        part.append(record)
        size += added
    if part:
        yield part
