"""The listeners of rebalances, with the interface of kafka-python's `kafka.consumer.subscription_state`."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from inspect import iscoroutine
from typing import Any

from kafkapy.compat.kafka.structs import TopicPartition

log = logging.getLogger("kafkapy.compat.kafka")


class ConsumerRebalanceListener(ABC):
    """The callbacks of a rebalance. They are called by the thread that polls or closes the consumer, and may commit.

    The partitions are a set.     An exception of a callback is logged.
    """

    @abstractmethod
    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> Any:
        """Is called before partitions are revoked."""

    @abstractmethod
    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> Any:
        """Is called after partitions were assigned."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> Any:
        """Is called when other members may already own the partitions; by default calls `on_partitions_revoked`."""
        return self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener(ABC):
    """The callbacks of a rebalance as coroutines, which run to their end in an event loop of their own."""

    @abstractmethod
    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> Any:
        """Is awaited before partitions are revoked."""

    @abstractmethod
    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> Any:
        """Is awaited after partitions were assigned."""

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> Any:
        """Is awaited when other members may already own the partitions; by default awaits `on_partitions_revoked`."""
        return await self.on_partitions_revoked(lost)


class ListenerAdapter:
    """A listener of kafkapy's client that calls a listener of kafka-python, synchronous or asynchronous."""

    def __init__(self, listener: ConsumerRebalanceListener | AsyncConsumerRebalanceListener) -> None:
        self._listener = listener

    def on_partitions_revoked(self, partitions: Iterable[tuple[str, int]]) -> None:
        self._call("on_partitions_revoked", partitions)

    def on_partitions_assigned(self, partitions: Iterable[tuple[str, int]]) -> None:
        self._call("on_partitions_assigned", partitions)

    def on_partitions_lost(self, partitions: Iterable[tuple[str, int]]) -> None:
        self._call("on_partitions_lost", partitions)

    def _call(self, name: str, partitions: Iterable[tuple[str, int]]) -> None:
        try:
            found = getattr(self._listener, name)({TopicPartition(*each) for each in partitions})
            if iscoroutine(found):
                # A thread of its own, because the caller may run an event loop.
                with ThreadPoolExecutor(1) as executor:
                    executor.submit(asyncio.run, found).result()
        except Exception:
            log.exception("The rebalance listener failed in %s", name)
