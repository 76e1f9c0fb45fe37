"""Feeds a topic with samples at a chosen rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from kafkapy.client import Producer
from kafkapy.client.serialization import SERIALIZERS
from kafkapy.tools.sample_data import Sample
from kafkapy.types import Clock

VALUE_FORMATS = ("text", "json", "msgpack")
# Records go out in slices of this length, whatever the rate.
_SLICE_MS = 10
# Without a rate: so many records are sent between two looks at whether to stop.
_FREE_SLICE = 1000


class TopicFeeder:
    """Sends samples until it is stopped.  For one thread; `stop` may be called from another, and from a signal handler.

    rate: records per second, evenly in slices of 10 ms; 0: as fast as it goes. After a stall what is missing follows
    at once. start_ms, step_ms: timestamps that do not go by the clock: the first, and how much later each next one
    is.
    """

    def __init__(
        self,
        producer: Producer,
        topic: str,
        samples: Iterator[Sample],
        *,
        clock: Clock,
        wait: Callable[[float], Any],
        rate: float = 0,
        value_format: str = "text",
        start_ms: int | None = None,
        step_ms: int = 0,
    ) -> None:
        """`wait` takes seconds, and may return early (`threading.Event.wait`)."""
        self._producer = producer
        self._topic = topic
        self._samples = samples
        self._clock = clock
        self._wait = wait
        self._rate = rate
        self._value_of = _values(value_format)
        self._start_ms = start_ms
        self._step_ms = step_ms
        self._is_stopped = False
        self._failure: BaseException | None = None
        self.sent = 0

    def feed(self, limit: int | None = None) -> int:
        """Sends `limit` samples (None: until `stop`), waits for their delivery, and returns how many. ApiError if a
        record could not be delivered."""
        started_ms = self._clock.monotonic_ms()
        while not self._is_stopped and self._failure is None and self.sent != limit:
            slice_size = _FREE_SLICE
            if self._rate:
                slice_size = int((self._clock.monotonic_ms() - started_ms + _SLICE_MS) * self._rate / 1000) - self.sent
            if limit is not None:
                slice_size = min(slice_size, limit - self.sent)
            if slice_size > 0:
                self._send(slice_size)
            if self._rate:
                self._wait(_SLICE_MS / 1000)
        self._producer.flush()
        if self._failure is not None:
            raise self._failure
        return self.sent

    def stop(self) -> None:
        """`feed` returns soon."""
        self._is_stopped = True

    def _send(self, count: int) -> None:
        for sample in islice(self._samples, count):
            timestamp = None if self._start_ms is None else self._start_ms + self.sent * self._step_ms
            key = None if sample.key is None else sample.key.encode()
            self._producer.send(
                self._topic, self._value_of(sample), key, timestamp=timestamp, on_delivery=self._on_delivery
            )
            self.sent += 1

    def _on_delivery(self, metadata: Any, error: BaseException | None) -> None:
        if error is not None:
            self._failure = error


def _values(value_format: str) -> Callable[[Sample], bytes]:
    if value_format == "text":
        return lambda sample: sample.text.encode()
    serializer = SERIALIZERS[value_format]
    assert serializer is not None
    found = serializer
    return lambda sample: found("", sample.members)
