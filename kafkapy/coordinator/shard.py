"""What the runtime asks of a coordinator's state for one partition, and what it gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkapy.coordinator.record import CoordinatorResult
from kafkapy.types import Clock


class CoordinatorShard(Protocol):
    """State of one partition of the internal topic. Owner thread only."""

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Applies one record of the log; `producer_id` is -1 outside transactions."""

    def replay_end_of_transaction(self, offset: int, producer_id: int, committed: bool) -> None:
        """Applies one transaction marker."""

    def on_loaded(self) -> None:
        """The whole log has been replayed; timers may start."""

    def on_unloaded(self) -> None:
        """This broker no longer leads the partition; whoever waits is to be answered."""


class ShardContext(Protocol):
    """What a shard may do to the world."""

    clock: Clock
    leader_epoch: int

    def run(self, operation: Callable[[], CoordinatorResult]) -> None:
        """Runs `operation` now as if it had been requested, with nobody to answer."""

    def schedule(self, key: str, delay_ms: int, operation: Callable[[], CoordinatorResult]) -> None:
        """Runs `operation` later as if it had been requested; replaces the timer of the same key."""

    def schedule_unless_there(self, key: str, delay_ms: int, operation: Callable[[], CoordinatorResult]) -> None:
        """As `schedule`, but a timer of that key stays as it is."""

    def cancel(self, key: str) -> None:
        """Forgets the timer of that key, if there is one."""

    def committed_offset(self) -> int:
        """High watermark of the shard's partition: what lies below it may be shown to others."""
