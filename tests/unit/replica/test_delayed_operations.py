"""The marks by which the gate knows that requests wait for a partition."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.replica.delayed_operations import DelayedOperations, FetchOperation
from kafkapy.types import TopicPartition

PARTITION = TopicPartition("t", 0)


class Waiting(DelayedOperation):
    __slots__ = ()

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None: ...

    def on_expiration(self) -> None: ...


class Held(FetchOperation):
    """A follower's held fetch, which counts how often it is tried."""

    __slots__ = ("tries",)

    def __init__(self) -> None:
        super().__init__(1000, is_from_follower=True)
        self.tries = 0

    def try_complete(self) -> bool:
        self.tries += 1
        return False

    def on_complete(self) -> None: ...


def test_a_change_of_many_partitions_tries_a_held_fetch_once() -> None:
    operations = DelayedOperations(lambda delay_ms, callback: SimpleNamespace(cancel=lambda: None))  # type: ignore[arg-type,return-value]
    held = Held()
    operations.fetch.watch(held, [2])
    partition: Any = SimpleNamespace(remote_replicas=(2, 3))
    with operations.held_fetches_together():
        for number in range(100):
            operations.complete_all(partition, TopicPartition("t", number))
        assert held.tries == 0
    assert held.tries == 1
    operations.complete_all(partition, PARTITION)
    assert held.tries == 2
    operations.complete_watching(PARTITION)
    assert held.tries == 2


@pytest.mark.parametrize("kinds", [[], ["produce"], ["delete_records"], ["produce", "delete_records"]])
def test_a_partition_is_marked_if_a_request_waits_for_its_high_watermark(kinds: list[str]) -> None:
    operations = DelayedOperations(lambda delay_ms, callback: SimpleNamespace(cancel=lambda: None))  # type: ignore[arg-type,return-value]
    for kind in kinds:
        getattr(operations, kind).try_complete_else_watch(Waiting(1000), [PARTITION])
    partition: Any = SimpleNamespace(remote_replicas=(), is_watched=True, is_commit_watched=True)
    operations.complete_and_mark(partition, PARTITION)
    assert (partition.is_watched, partition.is_commit_watched) == (False, bool(kinds))
