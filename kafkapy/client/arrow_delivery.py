"""The delivery of a table's rows: how many are delivered, and which have failed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from kafkapy.client.errors import RequestTimedOut, RowFailure, UndeliveredRows
from kafkapy.errors import ApiError, Error

if TYPE_CHECKING:
    from kafkapy._core.client.arrow_sender import BatchRows
    from kafkapy.client.network import Network

__all__ = ["ArrowDelivery", "RowFailure", "UndeliveredRows"]


class ArrowDelivery:
    """The outcome of `Producer.send_arrow`. Thread-safe.

    `row_count` is the number of rows that were sent, and `delivered` is the number of rows that the brokers have
    acknowledged so far. `failures` has the rows whose delivery has failed so far. Each of its entries has rows of one
    batch of records that have failed with the same error.
    """

    def __init__(self, network: Network, topic: str) -> None:
        self.topic = topic
        self.row_count = 0
        self.delivered = 0
        self.failures: list[RowFailure] = []
        self._network = network
        self._lock = threading.Lock()
        self._open_batches = 1  # the table itself counts as one until all its rows are sent

    def __repr__(self) -> str:
        failed = sum(len(each.rows) for each in self.failures)
        return f"<ArrowDelivery {self.topic}: {self.delivered} of {self.row_count} rows delivered, {failed} failed>"

    def done(self) -> bool:
        """Returns whether each row is delivered or has failed. Does not block."""
        return self._open_batches == 0

    def result(self, timeout: float | None = None) -> int:
        """Returns the number of rows when all are delivered; blocks, at most `timeout` seconds (None: without limit).

        Raises UndeliveredRows if rows have failed, when the outcome of all rows is known, and RequestTimedOut (a
        TimeoutError) after `timeout` seconds.
        """
        if not self.done() and not self._network.wait_until(self.done, timeout) and not self.done():
            raise RequestTimedOut(f"{self.row_count - self.delivered} rows are not acknowledged within {timeout} s")
        self.raise_failure()
        return self.delivered

    def raise_failure(self) -> None:
        """Raises UndeliveredRows if rows have failed so far. Does not block."""
        if not self.failures:
            return
        failures = list(self.failures)
        first = min(failures, key=lambda each: each.rows[0])
        failed = sum(len(each.rows) for each in failures)
        raise UndeliveredRows(
            first.error.error if isinstance(first.error, ApiError) else Error.UNKNOWN_SERVER_ERROR,
            f"{failed} of {self.row_count} rows were not delivered to the topic {first.topic}; the first one is row "
            f"{first.rows[0]}: {first.error}",
            failures,
        ) from first.error

    # Called by the producer

    def begin(self) -> None:
        """Counts a batch that has got rows of the table and whose outcome is not known yet.

        `finish` must be called when the outcome is known.
        """
        with self._lock:
            self._open_batches += 1

    def finish(self, rows: BatchRows, count: int) -> None:
        """Records the outcome of a batch that `begin` has counted: adds its delivered rows and its failures.

        `rows` are the rows of the table in the batch, and `count` is their number.
        """
        queue = rows.batch.queue
        failed = [RowFailure(queue.topic, queue.partition, numbers, error) for numbers, error in rows.failures()]
        with self._lock:
            self.failures += failed
            self.delivered += count - sum(len(each.rows) for each in failed)
            self._open_batches -= 1

    def end(self, row_count: int) -> None:
        """Records that all rows are sent, and how many there are."""
        with self._lock:
            self.row_count = row_count
            self._open_batches -= 1
