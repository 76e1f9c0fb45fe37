"""The compact records of a trace, their spans, and the export of spans as OTLP's JSON. This module has no state and
does no I/O.

A trace record is a msgpack array: version, stage, trace id, span id, parent's span id, time (µs since 1970), host,
client, topic, partition, offset, error. Partition and offset are -1 where they are not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkapy.client.reliable.trace_context import SPAN_ID_BYTES, TRACE_ID_BYTES
from kafkapy.named_tuple import NamedTuple

TRACE_TOPIC = "__kafkapy_trace"
SENT, ACKNOWLEDGED, RECEIVED, DONE = "sent", "acknowledged", "received", "done"
STAGES = (SENT, ACKNOWLEDGED, RECEIVED, DONE)
_VERSION = 1
_KIND_PRODUCER, _KIND_CONSUMER = 4, 5
_STATUS_ERROR = 2


class TraceRecord(NamedTuple):
    """One event in the life of a record.

    `stage` is "sent", "acknowledged", "received" or "done". The ids are those of W3C Trace Context; `parent_id` is b""
    without a parent. `time_us` is in µs since 1970. Partition and offset are -1 if they are not known; `error` is ""
    after a success.
    """

    stage: str
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    time_us: int
    host: str
    client: str
    topic: str
    partition: int
    offset: int
    error: str = ""


def pack_trace(record: TraceRecord) -> bytes:
    """Encodes a trace record as the bytes that are stored."""
    import msgpack

    packed: bytes = msgpack.packb([_VERSION, STAGES.index(record.stage), *record[1:]])
    return packed


def unpack_trace(content: bytes | None) -> TraceRecord:
    """Decodes a stored trace record. Raises ValueError if the bytes are not a trace record."""
    import msgpack

    try:
        fields: Any = msgpack.unpackb(content or b"")
        version, stage, *rest = fields
        found = TraceRecord(STAGES[stage], *rest)
    except (ValueError, TypeError, IndexError, msgpack.exceptions.UnpackException) as error:
        raise ValueError(f"The bytes are not a trace record: {error}") from error
    ids = (found.trace_id, found.span_id, found.parent_id)
    if version != _VERSION or not all(isinstance(each, bytes) for each in ids):
        raise ValueError("The bytes are not a trace record of this version")
    if len(found.trace_id) != TRACE_ID_BYTES or len(found.span_id) != SPAN_ID_BYTES:
        raise ValueError("The ids of the trace record have a wrong length")
    return found


class Span(NamedTuple):
    """The sending or the processing of a record; `end_us` is None while its end was not recorded.

    `is_producer` is True for a sending. The ids are those of W3C Trace Context, `parent_id` is b"" without a parent;
    times are in µs since 1970. Partition and offset are -1 if they are not known.
    """

    is_producer: bool
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    start_us: int
    end_us: int | None
    host: str
    client: str
    topic: str
    partition: int
    offset: int
    error: str


def spans_of(records: Iterable[TraceRecord]) -> list[Span]:
    """Combines trace records to spans, in the order of their beginning."""
    by_span: dict[bytes, list[TraceRecord]] = {}
    for each in records:
        by_span.setdefault(each.span_id, []).append(each)
    return sorted((_span(events) for events in by_span.values()), key=lambda span: span.start_us)


def _span(events: list[TraceRecord]) -> Span:
    ordered = sorted(events, key=lambda each: (each.time_us, STAGES.index(each.stage)))
    first, last = ordered[0], ordered[-1]
    located = next((each for each in ordered if each.offset >= 0), first)
    return Span(
        first.stage in (SENT, ACKNOWLEDGED),
        first.trace_id,
        first.span_id,
        first.parent_id,
        first.time_us,
        last.time_us if last.stage in (ACKNOWLEDGED, DONE) else None,
        first.host,
        first.client,
        first.topic,
        located.partition,
        located.offset,
        next((each.error for each in ordered if each.error), ""),
    )


def otlp_json(spans: Iterable[Span]) -> dict[str, Any]:
    """Returns the body of a request to `/v1/traces` (OTLP/HTTP in JSON), with one resource for each client.

    A span without a recorded end gets its beginning as its end.
    """
    by_client: dict[tuple[str, str], list[Span]] = {}
    for each in spans:
        by_client.setdefault((each.client, each.host), []).append(each)
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_attribute("service.name", client), _attribute("host.name", host)]},
                "scopeSpans": [{"scope": {"name": "kafkapy"}, "spans": [_otlp_span(each) for each in found]}],
            }
            for (client, host), found in by_client.items()
        ]
    }


def _otlp_span(span: Span) -> dict[str, Any]:
    operation = "send" if span.is_producer else "process"
    end_us = span.start_us if span.end_us is None else span.end_us
    body: dict[str, Any] = {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "name": f"{operation} {span.topic}",
        "kind": _KIND_PRODUCER if span.is_producer else _KIND_CONSUMER,
        "startTimeUnixNano": str(span.start_us * 1000),
        "endTimeUnixNano": str(end_us * 1000),
        "attributes": [
            _attribute("messaging.system", "kafka"),
            _attribute("messaging.operation.type", operation),
            _attribute("messaging.destination.name", span.topic),
            _attribute("messaging.destination.partition.id", str(span.partition)),
            {"key": "messaging.kafka.offset", "value": {"intValue": str(span.offset)}},
        ],
    }
    if span.parent_id:
        body["parentSpanId"] = span.parent_id.hex()
    if span.error:
        body["status"] = {"code": _STATUS_ERROR, "message": span.error}
    return body


def _attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}
