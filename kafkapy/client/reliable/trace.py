"""Tracing: interceptors that pass on `traceparent` and record what happens to each sampled record."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kafkapy.client.reliable.records import Output, RecordHeaders, SourceRecord
from kafkapy.client.reliable.side_channel import SideChannel, channel_producer
from kafkapy.client.reliable.trace_context import TRACE_HEADER, TraceParent, new_parent, new_span_id, parse_parent
from kafkapy.client.reliable.trace_records import (
    ACKNOWLEDGED,
    DONE,
    RECEIVED,
    SENT,
    TRACE_TOPIC,
    TraceRecord,
    pack_trace,
)

_current: ContextVar[TraceParent | None] = ContextVar("kafkapy_trace_parent", default=None)
MOST_ERROR_CHARACTERS = 200


def current_parent() -> TraceParent | None:
    """Returns the span within which the calling code runs: that of `Tracer.processing`, or else that of OpenTelemetry.

    Returns None outside of spans.
    """
    found = _current.get()
    return found if found is not None else _opentelemetry_parent()


def current_trace_id() -> str | None:
    """Returns the current span as the text of a header `traceparent`; None outside of spans. For
    `KafkaHandler(trace_id=...)`.
    """
    found = current_parent()
    return None if found is None else found.text()


def _opentelemetry_parent() -> TraceParent | None:
    """Returns the present span of OpenTelemetry, if that library is installed and has one."""
    try:
        from opentelemetry import trace  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return TraceParent(context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big"), context.trace_flags)


class Tracer:
    """Records the events of one client's records in a topic, in the background. Thread-safe.

    `interceptor` is an element of `interceptor.classes` of a producer or a consumer. The header `traceparent` of a
    producer's record names a new span. Its parent is the span in the record's own header or, without one, the current
    span; the parent's flag decides whether the events are recorded. If there is no parent, a new trace begins, and is
    recorded with the probability `sample_rate`. The program never waits for the trace records: those that do not fit
    into the queue are dropped and counted in `dropped`.
    """

    def __init__(
        self,
        client: str,
        properties: Mapping[str, Any] | None = None,
        *,
        sample_rate: float = 1.0,
        topic: str = TRACE_TOPIC,
        channel: SideChannel | None = None,
        chance: Callable[[], float] = random.random,
        **settings: Any,
    ) -> None:
        merged = {**(properties or {}), **{name.replace("_", "."): value for name, value in settings.items()}}
        self._client = client
        self._topic = topic
        self._sample_rate = sample_rate
        self._chance = chance
        self._host = socket.gethostname()
        self._channel = channel or SideChannel(channel_producer(merged), thread_name="kafkapy-trace")
        self.invalid = 0  # records whose header could not be read

    @property
    def dropped(self) -> int:
        """The number of trace records that were not written."""
        return self._channel.dropped

    @property
    def interceptor(self) -> TraceInterceptor:
        """A new interceptor for a producer or consumer."""
        return TraceInterceptor(self)

    @contextmanager
    def processing(self, record: SourceRecord) -> Iterator[TraceParent | None]:
        """Returns a context manager around the processing of a consumed record; its value is the span of the
        processing.

        Records that are sent within it are children of the span. The event "received" is recorded at its beginning and
        "done" at its end, with the error if there is one. If the record has no valid header `traceparent`, the value is
        None and nothing is recorded.
        """
        parent = self.parent_of(record.headers)
        if parent is None:
            yield None
            return
        span = parent.child(new_span_id())
        place = (record.topic, record.partition, record.offset)
        self.record(RECEIVED, span, parent.span_id, *place)
        token = _current.set(span)
        error = ""
        try:
            yield span
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            raise
        finally:
            _current.reset(token)
            self.record(DONE, span, parent.span_id, *place, error)

    def parent_of(self, headers: RecordHeaders) -> TraceParent | None:
        """Returns the span that a record's header `traceparent` names; None without a valid header."""
        for name, value in headers:
            if name == TRACE_HEADER:
                try:
                    return parse_parent(value)
                except ValueError:
                    self.invalid += 1
        return None

    def record(
        self, stage: str, span: TraceParent, parent_id: bytes, topic: str, partition: int, offset: int, error: str = ""
    ) -> None:
        """Writes a trace record of an event in the background, if its span is sampled.

        `stage` names the event, such as "sent"; `parent_id` is the span's parent, b"" for none. `partition` and
        `offset` are -1 if they are not known; `error` is "" after a success.
        """
        if span.is_sampled:
            time_us = time.time_ns() // 1000
            content = TraceRecord(
                stage,
                span.trace_id,
                span.span_id,
                parent_id,
                time_us,
                self._host,
                self._client,
                topic,
                partition,
                offset,
                error[:MOST_ERROR_CHARACTERS],
            )
            self._channel.put(Output(self._topic, pack_trace(content), span.trace_id))

    def begin(self, headers: RecordHeaders) -> tuple[TraceParent, bytes]:
        """Returns (span, parent's id) for a record that is being sent; the id is b"" if the span begins a new trace.

        The parent is the span in `headers` or, without a valid header, the current span.
        """
        parent = self.parent_of(headers) or current_parent()
        if parent is None:
            return new_parent(is_sampled=self._chance() < self._sample_rate), b""
        return parent.child(new_span_id()), parent.span_id

    def close(self, timeout: float = 5.0) -> None:
        """Writes the trace records in the queue, for `timeout` seconds at most."""
        self._channel.close(timeout)


class TraceInterceptor:
    """The interceptor that `Tracer.interceptor` returns, for a producer or a consumer."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def on_send_record(self, topic: str, headers: RecordHeaders) -> tuple[RecordHeaders, Callable[..., object] | None]:
        """Returns the headers with `traceparent`, and the function to call after the delivery.

        The function is called with the record's metadata and the error, each of which may be None. If the span is not
        sampled, None is returned instead of the function.
        """
        tracer = self._tracer
        span, parent_id = tracer.begin(headers)
        changed = (*(each for each in headers if each[0] != TRACE_HEADER), (TRACE_HEADER, span.text().encode()))
        if not span.is_sampled:
            return changed, None
        tracer.record(SENT, span, parent_id, topic, -1, -1)

        def on_delivery(metadata: Any, error: BaseException | None) -> None:
            partition, offset = (-1, -1) if metadata is None else (metadata.partition, metadata.offset)
            tracer.record(ACKNOWLEDGED, span, parent_id, topic, partition, offset, "" if error is None else str(error))

        return changed, on_delivery

    def on_consume(self, records: list[Any]) -> list[Any]:
        """Writes a trace record for each sampled record that was received; returns all records unchanged.

        A program that uses `Tracer.processing` needs no interceptor in its consumer.
        """
        each: SourceRecord
        for each in records:
            parent = self._tracer.parent_of(each.headers) if each.headers else None
            if parent is not None:
                span = parent.child(new_span_id())
                self._tracer.record(RECEIVED, span, parent.span_id, each.topic, each.partition, each.offset)
        return records
