"""Sends generated records (`sample_data`) to a topic at a chosen rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from kafkapy.client import Producer
from kafkapy.client.serialization import SERIALIZERS
from kafkapy.tools.progress import Progress
from kafkapy.tools.sample_data import Sample
from kafkapy.types import Clock

VALUE_FORMATS = ("text", "json", "msgpack")
# The time between two groups of records if there is a rate.
_SLICE_MS = 10
# Without a rate: the number of records sent between two checks for `stop`.
_FREE_SLICE = 1000


class TopicFeeder:
    """Sends samples to a topic. Not thread-safe, but another thread or a signal's handler may call `stop`.

    `rate` is the number of records per second; 0 means no limit. Every 10 ms it sends a group of records. After a
    delay, it sends all records that are missing for this rate at once. `start_ms` is the timestamp of the first record;
    if it is None, the timestamp of each record is the time of sending. Otherwise `step_ms` is the difference between
    the timestamps of two successive records.
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
        """Creates a feeder that sends `samples` to `topic`.

        `wait(seconds)` sleeps between groups of records, and may return early. `value_format` is one of VALUE_FORMATS:
        "text" sends the sample's text as the record's value; "json" and "msgpack" serialize its members.
        """
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
        """Sends `limit` samples, or samples without end if `limit` is None; returns the number of samples sent.

        Ends earlier when `stop` is called. Waits for the delivery of all records; raises ApiError, and sends no more
        records, after a record could not be delivered.
        """
        started_ms = self._clock.monotonic_ms()
        with Progress(limit or 0, "records") as progress:
            while not self._is_stopped and self._failure is None and self.sent != limit:
                slice_size = _FREE_SLICE
                if self._rate:
                    due = int((self._clock.monotonic_ms() - started_ms + _SLICE_MS) * self._rate / 1000)
                    slice_size = due - self.sent
                if limit is not None:
                    slice_size = min(slice_size, limit - self.sent)
                if slice_size > 0:
                    self._send(slice_size)
                    progress.advance(slice_size)
                if self._rate:
                    self._wait(_SLICE_MS / 1000)
        self._producer.flush()
        if self._failure is not None:
            raise self._failure
        return self.sent

    def stop(self) -> None:
        """Makes `feed` send no more records after the current group of 10 ms, and return after their delivery."""
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
