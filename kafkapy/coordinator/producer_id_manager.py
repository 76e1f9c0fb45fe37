"""Producer ids for idempotent and transactional producers, from blocks that the controller hands out (KIP-730)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from kafkapy.controller.producer_ids import ProducerIdsBlock, allocate_producer_ids
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage

logger = logging.getLogger("kafka.coordinator.transaction.ProducerIdManager")

# The next block is asked for when this part of the current one is spent.
PREFETCH_THRESHOLD = 0.9

OnBlock = Callable[[ProducerIdsBlock | Error], None]
AllocateBlock = Callable[[OnBlock], None]
OnProducerId = Callable[[int | Error], None]


class Controller(Protocol):
    """What is needed of the controller's loop: the operation runs there, its response comes when it is durable."""

    def submit(self, operation: Callable[[MetadataImage], ControllerResult[Any]]) -> Future[Any]: ...


def blocks_from_controller(
    controller: Controller, post: Callable[[Callable[[], None]], None], node_id: int
) -> AllocateBlock:
    """Asks `controller` for blocks and brings the answer to the owner thread by `post`."""

    def allocate(on_block: OnBlock) -> None:
        def done(future: Future[Any]) -> None:
            failure = future.exception()
            if failure is None:
                block = future.result()
                post(lambda: on_block(block))
                return
            logger.error("The controller gave no producer ids: %s", failure)
            error = failure.error if isinstance(failure, ApiError) else Error.COORDINATOR_NOT_AVAILABLE
            post(lambda: on_block(error))

        controller.submit(lambda image: allocate_producer_ids(image, node_id)).add_done_callback(done)

    return allocate


class ProducerIdManager:
    """Owns the current block and the next one, and who waits for an id. Owner thread only.

    No id is given out twice: a block is durable in the metadata log before this broker has it, and what is left of it
    at a restart is lost. Invariant: somebody waits only while a block is being asked for.
    """

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._next_id = 0
        self._end_id = 0
        self._prefetch_at = 0
        self._next_block: ProducerIdsBlock | None = None
        self._is_asking = False
        self._waiting: deque[OnProducerId] = deque()

    def generate(self, on_producer_id: OnProducerId) -> None:
        """Calls back with a fresh id, at once if one is at hand, or with the error that the controller answered."""
        if self._waiting or not self._has_id():
            self._waiting.append(on_producer_id)
        else:
            on_producer_id(self._take())
        if self._next_block is None and self._next_id >= self._prefetch_at:
            self._ask()
        assert self._is_asking or not self._waiting, "a request waits for a block that nobody has requested"

    def _has_id(self) -> bool:
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

    def _take(self) -> int:
        producer_id = self._next_id
        self._next_id += 1
        return producer_id

    def _ask(self) -> None:
        if not self._is_asking:
            self._is_asking = True
            self._allocate_block(self._on_block)

    def _on_block(self, block: ProducerIdsBlock | Error) -> None:
        self._is_asking = False
        if isinstance(block, Error):
            # Retriable for clients; the ids still at hand go on being used.
            refused, self._waiting = self._waiting, deque()
            for on_producer_id in refused:
                on_producer_id(block)
            return
        assert block.first_producer_id >= self._end_id, f"{block} after a block that ends at {self._end_id}"
        self._next_block = block
        while self._waiting and self._has_id():
            self._waiting.popleft()(self._take())
        if self._waiting:
            self._ask()
