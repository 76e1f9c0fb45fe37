"""A bounded queue of records, which a thread of the queue sends in the background, so that the caller never waits for a
broker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from kafkapy.client.reliable.records import Output
from kafkapy.errors import KafkapyError

log = logging.getLogger("kafkapy.client")

DEFAULT_MOST_RECORDS = 10_000
DEFAULT_MOST_BYTES = 8 << 20
_PAUSE_S = 0.05


class Sender(Protocol):
    """The methods of a producer that the channel calls."""

    def send(
        self, topic: str, value: Any = None, key: Any = None, *, headers: Any = None, on_delivery: Any = None
    ) -> object: ...

    def flush(self, timeout: float | None = None) -> bool: ...

    def close(self, timeout: float | None = None) -> None: ...


class SideChannel:
    """Sends records in the background. `put` may be called by any thread; it neither blocks nor raises.

    The queue has at most `most_records` records and `most_bytes` bytes. A record that does not fit into the queue or
    cannot be written is dropped: it is counted in `dropped`, and `on_drop` is called with it, by any thread. `sent`
    counts acknowledged records. `make_producer` is called by the channel's thread, which starts with the first record.
    """

    def __init__(
        self,
        make_producer: Callable[[], Sender],
        *,
        most_records: int = DEFAULT_MOST_RECORDS,
        most_bytes: int = DEFAULT_MOST_BYTES,
        on_drop: Callable[[Output], object] | None = None,
        thread_name: str = "kafkapy-side-channel",
    ) -> None:
        self._make_producer = make_producer
        self._most_records = most_records
        self._most_bytes = most_bytes
        self._on_drop = on_drop
        self._thread_name = thread_name
        self._lock = threading.Condition()
        self._queue: deque[Output] = deque()
        self._bytes = 0
        self._in_flight = 0
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._end_s: float | None = None
        self.dropped = 0
        self.sent = 0

    def put(self, record: Output) -> bool:
        """Adds a record to the queue; returns False if the record was dropped, because the queue is full or closed."""
        with self._lock:
            is_full = len(self._queue) + self._in_flight >= self._most_records
            if self._is_closed or is_full or self._bytes + record.size > self._most_bytes:
                self.dropped += 1
            else:
                self._queue.append(record)
                self._bytes += record.size
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=self._thread_name, daemon=True)
                    self._thread.start()
                self._lock.notify()
                return True
        if self._on_drop is not None:
            self._on_drop(record)
        return False

    def flush(self, timeout: float) -> bool:
        """Blocks until all records are acknowledged or dropped; returns whether that took less than `timeout` s."""
        end_s = time.monotonic() + timeout
        with self._lock:
            while self._queue or self._in_flight:
                left_s = end_s - time.monotonic()
                if left_s <= 0:
                    return False
                self._lock.wait(min(left_s, _PAUSE_S))
        return True

    def close(self, timeout: float = 5.0) -> None:
        """Spends at most `timeout` seconds on sending the waiting records, drops the rest, and ends the thread."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._end_s = time.monotonic() + timeout
            thread = self._thread
            self._lock.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout + 5)

    # The channel's thread

    def _run(self) -> None:
        producer: Sender | None = None
        try:
            while (record := self._next()) is not None:
                try:
                    if producer is None:
                        producer = self._make_producer()
                    producer.send(
                        record.topic,
                        record.value,
                        record.key,
                        headers=record.headers,
                        on_delivery=partial(self._on_delivery, record),
                    )
                except Exception as error:  # the thread must go on sending
                    if not isinstance(error, KafkapyError | OSError | ValueError):
                        log.exception("A record for %s could not be sent", record.topic)
                    self._on_delivery(record, None, error)
        finally:
            if producer is not None:
                producer.close(max((self._end_s or 0) - time.monotonic(), 0))

    def _next(self) -> Output | None:
        """Returns the next record to send; blocks until there is one.

        Returns None after `close` when the queue is empty. Also returns None, and drops the remaining records, when the
        time-out of `close` has passed.
        """
        with self._lock:
            while not self._queue and not self._is_closed:
                self._lock.wait()
            if not self._queue:
                return None
            if self._end_s is None or time.monotonic() <= self._end_s:
                record = self._queue.popleft()
                self._bytes -= record.size
                self._in_flight += 1
                return record
            left = list(self._queue)
            self._queue.clear()
            self.dropped += len(left)
        if self._on_drop is not None:
            for each in left:
                self._on_drop(each)
        return None

    def _on_delivery(self, record: Output, metadata: object, error: BaseException | None) -> None:
        with self._lock:
            self._in_flight -= 1
            if error is None:
                self.sent += 1
            else:
                self.dropped += 1
        if error is not None and self._on_drop is not None:
            self._on_drop(record)


def channel_producer(properties: Mapping[str, Any]) -> Callable[[], Sender]:
    """Returns the `make_producer` of a SideChannel: a function that makes its producer. `properties` is the producer's
    configuration.

    The producer has short time-outs, so that records do not accumulate while the brokers cannot be reached.
    """

    def make() -> Sender:
        from kafkapy.client.producer import Producer

        return Producer(
            {
                "linger.ms": 50,
                "max.block.ms": 5000,
                "delivery.timeout.ms": 30_000,
                "request.timeout.ms": 10_000,
                **{key: value for key, value in properties.items() if key != "interceptor.classes"},
            }
        )

    return make
