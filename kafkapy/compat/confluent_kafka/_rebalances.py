"""The connection between the rebalances of kafkapy's consumer and the callbacks of confluent-kafka's Consumer."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from kafkapy.types import TopicPartition as Place


class Rebalanced(Protocol):
    """The part of Consumer that takes part in rebalances: the callbacks of the program, and the methods that call
    them."""

    _on_assign: Any
    _on_revoke: Any
    _on_lost: Any

    def _rebalanced(self, places: list[Place], callback: Any) -> None: ...

    def _revoked(self, places: list[Place], callback: Any, *, can_commit: bool) -> None: ...


class Rebalances:
    """The rebalance listener that kafkapy's consumer receives; it calls the rebalance callbacks of the program.

    The networking thread must not keep a dropped consumer alive, so that the consumer owns the callbacks.
    """

    def __init__(self, consumer: Rebalanced) -> None:
        self._reference = weakref.ref(consumer)

    def on_partitions_assigned(self, places: list[Place]) -> None:
        if (consumer := self._reference()) is not None:
            consumer._rebalanced(places, consumer._on_assign)

    def on_partitions_revoked(self, places: list[Place]) -> None:
        if (consumer := self._reference()) is not None:
            consumer._revoked(places, consumer._on_revoke, can_commit=True)

    def on_partitions_lost(self, places: list[Place]) -> None:
        if (consumer := self._reference()) is not None:
            consumer._revoked(places, consumer._on_lost or consumer._on_revoke, can_commit=False)
