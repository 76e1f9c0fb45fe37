"""The controller's thread: event -> records -> append and sync -> image -> listeners -> response.

Operations are pure functions of the image. All operations that wait are run, each on the image after the one before,
and written with one sync. Then each delta is published in order, and only after that are the responses sent: the change
that a response reports is durable, and every listener has seen it.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataCache, MetadataImage
from kafkapy.quorum.embedded_quorum import EmbeddedQuorum
from kafkapy.types import Clock

MAX_QUEUED_OPERATIONS = 10_000
MAX_OPERATIONS_PER_APPEND = 128
# A stop writes a snapshot if the next start would have to replay more than this number of records (about a quarter
# second). Each start and stop changes every partition: without snapshots, starts would become slower and slower.
LONG_REPLAY = 20_000
logger = logging.getLogger("kafka.controller.QuorumController")

Response = TypeVar("Response")
Operation = Callable[[MetadataImage], ControllerResult[Any]]


class MetadataListener(Protocol):
    """A listener that acts on changes of the metadata: logs, replicas, configuration."""

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Is called on the controller's thread after commit, in log order; must not wait for that thread."""


class ControllerLoop:
    """Owns the newest image, and is the only writer of the metadata log.

    `submit` may be called from any thread; everything else happens on the loop's own thread. A failure of an append or
    a listener is fatal: `on_fault` is called once, and all waiting and later operations fail.
    """

    def __init__(
        self,
        quorum: EmbeddedQuorum,
        cache: MetadataCache,
        clock: Clock,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self.cache = cache
        self._quorum = quorum
        self._clock = clock
        self._on_fault = on_fault
        self._listeners: list[MetadataListener] = []
        self._queue: queue.Queue[tuple[Operation, Future[Any]] | None] = queue.Queue(MAX_QUEUED_OPERATIONS)
        self._thread = threading.Thread(target=self._run, name="quorum-controller", daemon=True)
        self._failure: BaseException | None = None
        self._stopping = False
        self._bytes_since_snapshot = 0
        self._snapshot_deadline_ms: int | None = None

    @property
    def image(self) -> MetadataImage:
        """The newest committed image that every listener has seen."""
        return self.cache.image

    @property
    def is_active(self) -> bool:
        """True if the loop accepts operations: this node is the controller of its cluster. Any thread."""
        return self._thread.is_alive() and self._failure is None and not self._stopping

    def add_listener(self, listener: MetadataListener) -> None:
        """Adds a listener, before `start` or on the loop's own thread. The listener gets the deltas from the next
        commit on."""
        self._listeners.append(listener)

    def start(self, image: MetadataImage) -> None:
        """Begins the next epoch on top of `image`, as the quorum opened it, and starts the thread. Raises
        StorageError."""
        self.cache.image = self._quorum.begin_epoch(image)
        self._thread.start()

    def submit(self, operation: Callable[[MetadataImage], ControllerResult[Response]]) -> Future[Response]:
        """Runs an operation; its Future gets the response once the records are durable and published.

        The Future fails with the ApiError that the operation raises, with REQUEST_TIMED_OUT when too many operations
        wait already, or with NOT_CONTROLLER after the loop has ended.
        """
        future: Future[Response] = Future()
        if self._stopping or self._failure is not None:
            future.set_exception(ApiError(Error.NOT_CONTROLLER, "The controller is shutting down."))
            return future
        try:
            self._queue.put_nowait((operation, future))
        except queue.Full:
            future.set_exception(ApiError(Error.REQUEST_TIMED_OUT, "Too many operations wait for the controller."))
        return future

    def stop(self) -> None:
        """Runs the operations submitted before, ends the thread and closes the log. Not called on the loop's thread."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._process(self._take())
            if self._failure is None and self._quorum.records_behind_snapshot > LONG_REPLAY:
                self._quorum.write_snapshot(self.cache.image)
            self._quorum.close()
        except BaseException as error:
            self._fail(error)
        self._stopping = True
        self._fail_waiting()

    def _fail(self, error: BaseException) -> None:
        """Reports the first failure, before any response that follows from it."""
        if self._failure is None:
            self._failure = error
            trace = None if isinstance(error, StorageError) else error  # A full disk is not a bug.
            logger.critical("the controller stops after an error: %s", error, exc_info=trace)
            self._on_fault(error)

    def _take(self) -> list[tuple[Operation, Future[Any]]]:
        """Waits until an operation is submitted, and returns the waiting operations, at most
        MAX_OPERATIONS_PER_APPEND."""
        taken: list[tuple[Operation, Future[Any]]] = []
        try:
            event = self._queue.get(timeout=self._snapshot_wait_s())
            while True:
                if event is None:
                    self._stopping = True
                    break
                taken.append(event)
                if len(taken) == MAX_OPERATIONS_PER_APPEND:
                    break
                event = self._queue.get_nowait()
        except queue.Empty:
            return taken
        return taken

    def _process(self, events: list[tuple[Operation, Future[Any]]]) -> None:
        image = self.cache.image
        batches: list[bytes] = []
        outcomes: list[Callable[[], None]] = []
        for operation, future in events:
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = operation(image)
                delta = self._replay(image, result)
                encoded, end_offset = self._quorum.encode(image.offset, result.records)
            except Exception as error:
                if not isinstance(error, ApiError):
                    logger.exception("an operation of the controller failed")
                outcomes.append(_failure(future, error))
                continue
            if encoded:
                image = delta.to_image(end_offset, self._quorum.epoch)
                batches += encoded
                outcomes.append(self._publication(delta, image))
            outcomes.append(_success(future, result.response))
        try:
            if batches:
                self._quorum.log.append(batches)
                end_offset = self._quorum.log.end_offset
                assert end_offset == image.offset, f"the log ends at {end_offset}, its image at {image.offset}"
            for outcome in outcomes:
                outcome()
        except BaseException as error:
            self._fail(error)
            for _, future in events:
                if not future.done():
                    future.set_exception(ApiError(Error.KAFKA_STORAGE_ERROR))
            raise
        self._maybe_snapshot(sum(map(len, batches)))

    @staticmethod
    def _replay(image: MetadataImage, result: ControllerResult[Any]) -> MetadataDelta:
        delta = MetadataDelta(image)
        for message, _ in result.records:
            delta.replay(message)
        return delta

    def _publication(self, delta: MetadataDelta, image: MetadataImage) -> Callable[[], None]:
        def publish() -> None:
            self.cache.image = image
            for listener in self._listeners:
                listener.on_metadata(delta, image)

        return publish

    def _snapshot_wait_s(self) -> float | None:
        if self._snapshot_deadline_ms is None:
            return None
        return max(0.0, (self._snapshot_deadline_ms - self._clock.monotonic_ms()) / 1000)

    def _maybe_snapshot(self, appended_bytes: int) -> None:
        """Writes a snapshot if enough bytes were appended since the last one, or if the first record after it is old
        enough."""
        settings = self._quorum.settings
        self._bytes_since_snapshot += appended_bytes
        monotonic_ms = self._clock.monotonic_ms()
        if self._snapshot_deadline_ms is None and appended_bytes and settings.snapshot_interval_ms > 0:
            self._snapshot_deadline_ms = monotonic_ms + settings.snapshot_interval_ms
        is_due = self._snapshot_deadline_ms is not None and monotonic_ms >= self._snapshot_deadline_ms
        if self._bytes_since_snapshot >= settings.snapshot_after_bytes or is_due:
            self._quorum.write_snapshot(self.cache.image)
            self._bytes_since_snapshot = 0
            self._snapshot_deadline_ms = None

    def _fail_waiting(self) -> None:
        while True:
            try:
                event = self._queue.get_nowait()
            except queue.Empty:
                return
            if event is not None and event[1].set_running_or_notify_cancel():
                event[1].set_exception(ApiError(Error.NOT_CONTROLLER, "The controller is shutting down."))


def _success(future: Future[Any], response: object) -> Callable[[], None]:
    return lambda: future.set_result(response)


def _failure(future: Future[Any], error: Exception) -> Callable[[], None]:
    return lambda: future.set_exception(error)
