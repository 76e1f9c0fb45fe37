"""Producer ids for idempotent and transactional producers, from blocks that the controller allocates (KIP-730)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from kafkapy.controller.port import Controller
from kafkapy.controller.producer_ids import ProducerIdsBlock, allocate_producer_ids
from kafkapy.errors import ApiError, Error

logger = logging.getLogger("kafka.coordinator.transaction.ProducerIdManager")

# The next block is requested when this fraction of the current one is used.
PREFETCH_THRESHOLD = 0.9

OnBlock = Callable[[ProducerIdsBlock | Error], None]
AllocateBlock = Callable[[OnBlock], None]
OnProducerId = Callable[[int | Error], None]


def blocks_from_controller(
    controller: Controller, post: Callable[[Callable[[], None]], None], node_id: int
) -> AllocateBlock:
    """Returns a function that requests a block of producer ids from `controller`.

    The function takes one callback, which gets the block, or the error if the request failed. The callback is called on
    the reactor's thread: `post(work)` makes this thread call `work()`.
    """

    def allocate(on_block: OnBlock) -> None:
        def done(future: Future[Any]) -> None:
            failure = future.exception()
            if failure is None:
                block = future.result()
                post(lambda: on_block(block))
                return
            logger.error("The controller allocated no producer ids: %s", failure)
            error = failure.error if isinstance(failure, ApiError) else Error.COORDINATOR_NOT_AVAILABLE
            post(lambda: on_block(error))

        controller.submit(lambda image: allocate_producer_ids(image, node_id)).add_done_callback(done)

    return allocate


class ProducerIdManager:
    """The source of this broker's producer ids: the current block, the next block, and the callers that wait for an id.

    Only the thread that owns it may use it.

    No id is returned twice: a block is durable in the metadata log before this broker gets it, and the unused ids of
    the block are lost at a restart. Invariant: callers wait only while a block is being requested.
    """

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._next_id = 0
        self._end_id = 0
        self._prefetch_at = 0
        self._next_block: ProducerIdsBlock | None = None
        self._is_requesting = False
        self._waiting: deque[OnProducerId] = deque()

    def generate(self, on_producer_id: OnProducerId) -> None:
        """Calls `on_producer_id` with a new producer id, or with the Error of the controller if it allocates no ids.

        If an id is available, the callback is called before `generate` returns, otherwise later.
        """
        if self._waiting or not self._ensure_id():
            self._waiting.append(on_producer_id)
        else:
            on_producer_id(self._next_producer_id())
        if self._next_block is None and self._next_id >= self._prefetch_at:
            self._request_block()
        assert self._is_requesting or not self._waiting, "a request waits for a block that nobody has requested"

    def _ensure_id(self) -> bool:
        """Returns True if an id is available. First replaces a used-up current block by the next block, if there is
        one."""
        if self._next_id < self._end_id:
            return True
        block = self._next_block
        if block is None:
            return False
        self._next_block = None
        self._next_id = block.first_producer_id
        self._end_id = block.first_producer_id + block.size
        self._prefetch_at = block.first_producer_id + int(block.size * PREFETCH_THRESHOLD)
        return True

    def _next_producer_id(self) -> int:
        producer_id = self._next_id
        self._next_id += 1
        return producer_id

    def _request_block(self) -> None:
        if not self._is_requesting:
            self._is_requesting = True
            self._allocate_block(self._on_block)

    def _on_block(self, block: ProducerIdsBlock | Error) -> None:
        self._is_requesting = False
        if isinstance(block, Error):
            # The error is retriable for clients. The remaining ids of the current block can still be used.
            refused, self._waiting = self._waiting, deque()
            for on_producer_id in refused:
                on_producer_id(block)
            return
        assert block.first_producer_id >= self._end_id, f"{block} after a block that ends at {self._end_id}"
        self._next_block = block
        while self._waiting and self._ensure_id():
            self._waiting.popleft()(self._next_producer_id())
        if self._waiting:
            self._request_block()
