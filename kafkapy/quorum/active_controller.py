"""Runs the controller's operations while this node leads the quorum, and publishes their records once committed.

Each operation sees the image (the state of the metadata) with the records of all operations before it, committed or
not. The records of all operations that are run together are appended together. Responses are sent in the order of the
operations. A response is delayed, and may be sent after later ones, if a listener has not yet applied the changes that
the response reports.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from kafkapy.controller.result import ControllerResult, Operation
from kafkapy.errors import ApiError
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

logger = logging.getLogger("kafka.controller.QuorumController")

# (offset of the first record, records) -> batches and the offset after the last record
Encode = Callable[[int, Sequence[MessageAndVersion]], tuple[list[bytes], int]]


class Submitted(NamedTuple):
    """An operation that waits to be run on the quorum thread (see `controller_loop`), and the future that gets its
    response.
    """

    operation: Operation[Any]
    future: Future[Any]


class _Waiting(NamedTuple):
    """The outcome of an operation that was run. The response is sent when the log is committed up to `end_offset`."""

    end_offset: int
    delta: MetadataDelta | None  # None: the operation has no records
    image: MetadataImage
    future: Future[Any] | None  # None: nobody waits for a response
    response: object
    error: Exception | None


class ActiveController:
    """The active controller of one epoch; owns the newest image, which includes uncommitted records. Quorum thread
    only.

    Invariant: the log ends at `image.offset`, and the outcomes in `_waiting` are ordered by `end_offset`.
    """

    def __init__(
        self,
        image: MetadataImage,
        epoch: int,
        encode: Encode,
        append: Callable[[list[bytes]], None],
        publish: Callable[[MetadataDelta, MetadataImage], list[Future[None]]],
    ) -> None:
        """Creates the active controller of `epoch`, with the `image` at the end of the log.

        `encode(base_offset, records)` returns the encoded batches and the offset after them. `append` writes batches to
        the log of this node, durably. `publish` is called for each committed change, in log order, and returns a Future
        for each listener that has not applied the change yet.
        """
        self.image = image
        self.epoch = epoch
        self._encode = encode
        self._append = append
        self._publish = publish
        self._waiting: deque[_Waiting] = deque()
        self._committed_offset = image.offset

    def run(self, submitted: Sequence[Submitted]) -> int:
        """Calls each operation with the newest image, and appends the records of all of them with one append. Returns
        the number of bytes appended.

        An operation that raises an exception changes nothing, and its future gets the exception. After an exception of
        `append` the outcomes are unknown, and the caller has to call `fail`.
        """
        batches: list[bytes] = []
        image = self.image
        for operation, future in submitted:
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = operation(image)
                delta = _replayed(image, result)
                encoded, end_offset = self._encode(image.offset, result.records)
            except Exception as error:
                if not isinstance(error, ApiError):
                    logger.exception("an operation of the controller failed")
                self._waiting.append(_Waiting(image.offset, None, image, future, None, error))
                continue
            if encoded:
                image = delta.to_image(end_offset, self.epoch)
                batches += encoded
            self._waiting.append(
                _Waiting(image.offset, delta if encoded else None, image, future, result.response, None)
            )
        self.image = image
        if batches:
            self._append(batches)  # if this node is the only voter, the append itself calls `commit`
        # Completes the operations without records and those with an error, after which the high watermark may not rise.
        self.commit(self._committed_offset)
        return sum(map(len, batches))

    def skip_to(self, end_offset: int) -> None:
        """Sets the end of the log to `end_offset`, after the quorum itself has appended control records."""
        assert end_offset >= self.image.offset, "the log became shorter while this node led"
        delta = MetadataDelta(self.image)
        self.image = delta.to_image(end_offset, self.epoch)
        self._waiting.append(_Waiting(end_offset, delta, self.image, None, None, None))

    def commit(self, high_watermark: int) -> None:
        """Publishes the changes whose records are below `high_watermark`, and completes the futures of their
        operations."""
        self._committed_offset = max(self._committed_offset, high_watermark)
        while self._waiting and self._waiting[0].end_offset <= self._committed_offset:
            outcome = self._waiting.popleft()
            applying = [] if outcome.delta is None else self._publish(outcome.delta, outcome.image)
            _respond(outcome, applying)

    def fail(self, error: ApiError) -> None:
        """Sets the exception `error` in the futures of all operations that wait for their commit, for example because
        this node no longer leads. The records of these operations may still be committed later."""
        while self._waiting:
            future = self._waiting.popleft().future
            if future is not None:
                future.set_exception(error)


def _respond(outcome: _Waiting, applying: list[Future[None]]) -> None:
    """Completes the Future of an operation with the response or an error, when all Futures in `applying` are completed.
    Does nothing if the operation has no Future. Runs on the thread that completes the last of them."""
    future = outcome.future
    if future is None:
        return
    for each in applying:
        if not each.done():
            each.add_done_callback(lambda _: _respond(outcome, applying))
            return
    failure = next((error for each in applying if (error := each.exception()) is not None), outcome.error)
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(outcome.response)


def _replayed(image: MetadataImage, result: ControllerResult[Any]) -> MetadataDelta:
    """Returns the changes that the result's records make to `image`. The records that begin and end transactions are
    skipped, because a result contains only whole transactions."""
    delta = MetadataDelta(image)
    for message, _ in result.records:
        if not isinstance(message, (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)):
            delta.replay(message)
    return delta
