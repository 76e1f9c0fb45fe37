"""The controller of a process as its port shows it, with an image in memory."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from kafkapy.controller.result import Operation
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataCache, MetadataImage


class MemoryController:
    """A controller that runs each operation at once on its newest image.

    If `held` is a list, operations wait in it until `release` is called.
    """

    def __init__(self, cache: MetadataCache, *, is_active: bool = True) -> None:
        self.cache = cache
        self.is_active = is_active
        self.held: list[tuple[Operation[Any], Future[Any]]] | None = None
        self.submitted = 0
        self.epoch = cache.image.epoch

    @property
    def image(self) -> MetadataImage:
        return self.cache.image

    def submit(self, operation: Operation[Any]) -> Future[Any]:
        self.submitted += 1
        future: Future[Any] = Future()
        if self.held is not None:
            self.held.append((operation, future))
        else:
            self._run(operation, future)
        return future

    def release(self) -> None:
        """Runs the operations that wait."""
        held, self.held = self.held or [], None
        for operation, future in held:
            self._run(operation, future)

    def _run(self, operation: Operation[Any], future: Future[Any]) -> None:
        if not self.is_active:
            future.set_exception(ApiError(Error.NOT_CONTROLLER))
            return
        image = self.cache.image
        try:
            result = operation(image)
        except ApiError as error:
            future.set_exception(error)
            return
        delta = MetadataDelta(image)
        for message, _ in result.records:
            delta.replay(message)
        self.cache.image = delta.to_image(image.offset + len(result.records), self.epoch)
        future.set_result(result.response)
