"""The header `traceparent`, the trace records, and their spans."""

from __future__ import annotations

import pytest

from kafkapy.client.reliable.trace import Tracer
from kafkapy.client.reliable.trace_context import new_parent, parse_parent
from kafkapy.client.reliable.trace_records import (
    ACKNOWLEDGED,
    DONE,
    RECEIVED,
    SENT,
    TraceRecord,
    otlp_json,
    pack_trace,
    spans_of,
    unpack_trace,
)
from tests.unit.client.reliable.simulated_record import SimulatedRecord

# The example of the recommendation, section 3.2.
EXAMPLE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_the_examples_of_the_recommendation_are_read():
    found = parse_parent(EXAMPLE)
    assert found.trace_id.hex() == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert (found.span_id.hex(), found.is_sampled, found.text()) == ("00f067aa0ba902b7", True, EXAMPLE)
    assert not parse_parent(EXAMPLE[:-2] + "00").is_sampled
    assert parse_parent("cc" + EXAMPLE[2:] + "-what-the-future-brings").text() == EXAMPLE
    assert parse_parent(EXAMPLE[:-2] + "ff").text() == EXAMPLE


@pytest.mark.parametrize(
    "text",
    [
        None,
        b"",
        b"\xff",
        EXAMPLE.upper(),
        EXAMPLE + "-more",
        "ff" + EXAMPLE[2:],
        "cc" + EXAMPLE[2:] + "more",
        EXAMPLE[:-1],
        EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        EXAMPLE.replace("00f067aa0ba902b7", "0" * 16),
        EXAMPLE.replace("-", "_"),
        " " + EXAMPLE,
    ],
)
def test_an_invalid_header_is_refused(text):
    with pytest.raises(ValueError, match=r"traceparent|zeros"):
        parse_parent(text)


class Channel:
    """A side channel that stores the records that are written to it."""

    def __init__(self):
        self.records = []
        self.dropped = 0

    def put(self, output):
        self.records.append(unpack_trace(output.value))
        return True

    def close(self, timeout):
        """Does nothing."""


def test_a_sent_record_is_the_child_of_the_one_being_processed():
    channel = Channel()
    tracer = Tracer("shop", channel=channel, chance=lambda: 0.5, sample_rate=0.6)
    consumed = SimulatedRecord(headers=(("traceparent", EXAMPLE.encode()),))
    kept = []

    def process() -> None:
        with tracer.processing(consumed) as span:
            kept.append((span, *tracer.interceptor.on_send_record("out", (("mine", b"1"),))))
            kept[0][2](None, ValueError("refused"))
            raise KeyError("later")

    with pytest.raises(KeyError):
        process()
    [(span, headers, _)] = kept
    assert [each.stage for each in channel.records] == [RECEIVED, SENT, ACKNOWLEDGED, DONE]
    received, sent, acknowledged, done = channel.records
    assert received.parent_id.hex() == "00f067aa0ba902b7" and sent.parent_id == span.span_id == received.span_id
    assert parse_parent(dict(headers)["traceparent"]).span_id == sent.span_id == acknowledged.span_id
    assert headers[0] == ("mine", b"1") and acknowledged.error == "refused" and done.error.startswith("KeyError")
    assert tracer.begin(())[1] == b""  # outside of the processing, a new trace begins


def test_only_sampled_traces_are_recorded():
    channel = Channel()
    tracer = Tracer("shop", channel=channel, chance=lambda: 0.5, sample_rate=0.4)
    headers, callback = tracer.interceptor.on_send_record("out", ())
    assert callback is None and dict(headers)["traceparent"].endswith(b"-00")
    record = SimulatedRecord(headers=(*headers, ("other", b"")))
    assert tracer.interceptor.on_consume([record]) == [record]
    with tracer.processing(SimulatedRecord(headers=(("traceparent", b"bad"),))) as span:
        assert span is None
    assert not channel.records and tracer.invalid == 1


def event(stage: str, span: bytes, time_us: int, **fields) -> TraceRecord:
    parent = new_parent(is_sampled=True)
    plain = TraceRecord(stage, parent.trace_id, span, b"", time_us, "host", "client", "t", -1, -1)
    return plain._replace(**fields)


def test_the_events_of_a_span_are_joined():
    one, two = b"a" * 8, b"b" * 8
    records = [
        event(ACKNOWLEDGED, one, 2000, partition=1, offset=9),
        event(SENT, one, 1000),
        event(RECEIVED, two, 3000, partition=1, offset=9, parent_id=one),
    ]
    assert [unpack_trace(pack_trace(each)) for each in records] == records
    sent, received = spans_of(records)
    assert (sent.start_us, sent.end_us, sent.offset, sent.is_producer) == (1000, 2000, 9, True)
    assert (received.end_us, received.is_producer) == (None, False)
    [resource] = otlp_json([sent, received._replace(error="x")])["resourceSpans"]
    first, second = resource["scopeSpans"][0]["spans"]
    assert (first["kind"], first["endTimeUnixNano"]) == (4, "2000000") and "parentSpanId" not in first
    assert second["parentSpanId"] == one.hex() and second["status"] == {"code": 2, "message": "x"}


@pytest.mark.parametrize("content", [None, b"", b"\x01", b"\x92\x01\x09", b"\xc1"])
def test_other_bytes_are_no_trace_record(content):
    with pytest.raises(ValueError, match="trace record"):
        unpack_trace(content)
