"""The command `kafkapy trace`: prints the history of a record, or exports it to an OpenTelemetry collector."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime

from kafkapy.client.reliable.trace_query import TraceQuery, export
from kafkapy.client.reliable.trace_records import TRACE_TOPIC, Span, TraceRecord
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.reliable.service import duration_s, service_properties
from kafkapy.tools.short.options import CONNECTION
from kafkapy.tools.tool import run_tool

_PLACE = re.compile(r"(.+)-(\d+)@(\d+)")
_TRACE_ID = re.compile(r"[0-9a-f]{32}")


def iso_time(time_us: int) -> str:
    """Returns a time in µs since 1970 as ISO 8601 text in UTC, with microseconds."""
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat(timespec="microseconds")


def line_of(record: TraceRecord, start_us: int) -> str:
    """Returns a line of text that describes a trace record.

    `start_us` is the time, in µs since 1970, of the first record of the trace; the line has the milliseconds since that
    time.
    """
    place = record.topic if record.offset < 0 else f"{record.topic}-{record.partition}@{record.offset}"
    error = f"  {record.error}" if record.error else ""
    elapsed_ms = (record.time_us - start_us) / 1000
    return f"{iso_time(record.time_us)}  +{elapsed_ms:9.3f} ms  {record.stage:12}  {record.client}  {place}{error}"


def span_object(span: Span) -> dict[str, object]:
    """Returns the fields of a span for JSON, with ids as hexadecimal text."""
    fields = span._asdict()
    return fields | {name: fields[name].hex() for name in ("trace_id", "span_id", "parent_id")}


def run(arguments: Arguments) -> int:
    """Prints or exports the spans of a record's trace; returns 0, the exit code."""
    arguments.require_one_of("id", "record")
    from_ms = None
    if arguments["since"] is not None:
        from_ms = time.time_ns() // 1_000_000 - round(duration_s(arguments["since"]) * 1000)
    place = _PLACE.fullmatch(arguments["record"] or "")
    if arguments["record"] is not None and place is None:
        raise UsageError(f"{arguments['record']} does not name a record, such as orders-0@17")
    if arguments["id"] is not None and not _TRACE_ID.fullmatch(arguments["id"]):
        raise UsageError(f"{arguments['id']} is not the id of a trace: 32 hexadecimal digits are expected")
    query = TraceQuery(service_properties(arguments), arguments["topic"], from_ms)
    if place is not None:
        records = query.by_record(place[1], int(place[2]), int(place[3]))
    else:
        records = query.by_trace(frozenset((bytes.fromhex(arguments["id"]),)))
    if not records:
        raise ToolError("There is no trace record of it")
    spans = query.spans(records)
    if arguments["otlp"] is not None:
        export(arguments["otlp"], spans)
        print(f"{len(spans)} spans were exported to {arguments['otlp']}")
    elif arguments["json"]:
        for span in spans:
            print(json.dumps(span_object(span)))
    else:
        ordered = sorted(records, key=lambda each: each.time_us)
        print(f"trace {ordered[0].trace_id.hex()}")
        for record in ordered:
            print(line_of(record, ordered[0].time_us))
    return 0


TOOL = Tool(
    name="trace",
    description="Prints what happened to a record: sent, acknowledged, received, done.\n\n"
    "The programs write trace records by kafkapy.client.reliable.trace.Tracer; docs/reliable.md describes how.",
    run=run,
    options=(
        Option("id", "The id of a trace, the second part of a record's header traceparent.", "hex"),
        Option("record", "A record of the trace, such as orders-0@17.", "topic-partition@offset"),
        Option("since", "Read only the trace records that are younger than this, such as 2h.", "duration"),
        Option("topic", "The topic of the trace records.", "topic", default=TRACE_TOPIC),
        Option("otlp", "Send the spans to this collector by OTLP/HTTP, such as http://localhost:4318.", "url"),
        Option("json", "Print the spans as JSON, one per line."),
        *CONNECTION,
    ),
    examples=(
        Example("The way of a record", "--record orders-0@17 -b localhost:9092"),
        Example(
            "Export a trace",
            "--id 4bf92f3577b34da6a3ce929d0e0e4736 --otlp http://localhost:4318 -b localhost:9092",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
