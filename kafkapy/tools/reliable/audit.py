"""The command `kafkapy audit`: names the periods of time (buckets) in which records were lost or repeated."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime

from kafkapy.client.reliable.audit import AUDIT_TOPIC, BUCKET_MS, AuditTable, Difference, unpack_count
from kafkapy.client.reliable.topic_scan import all_partitions, scan
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option, ToolError
from kafkapy.tools.reliable.service import duration_s, service_properties
from kafkapy.tools.short.options import CONNECTION
from kafkapy.tools.tool import run_tool

DIFFERENT = 2


def line_of(found: Difference) -> str:
    """Returns a line of text for a difference: time bucket, topic, group or broker, and the number of missing or
    repeated records."""
    moment = datetime.fromtimestamp(found.bucket_ms / 1000, UTC).isoformat(timespec="seconds")
    what = f"{found.missing} missing" if found.missing > 0 else f"{-found.missing} too many"
    details = ", ".join(f"{name}: {count}" for name, count in found.clients)
    where = "broker" if found.consumed is None else f"group {found.group}"
    return f"{moment}  {found.topic}  {where}: {what}  ({details})"


def run(arguments: Arguments) -> int:
    """Prints the differences; returns the exit code: 2 if there are any, otherwise 0."""
    now_ms = time.time_ns() // 1_000_000
    from_ms = 0 if arguments["since"] is None else now_ms - round(duration_s(arguments["since"]) * 1000)
    to_ms = now_ms - round(duration_s(arguments["settle"]) * 1000) - BUCKET_MS + 1
    properties = service_properties(arguments)
    partitions = all_partitions(properties, arguments["audit-topic"])
    if not partitions:
        raise ToolError(f"The topic {arguments['audit-topic']} of the audit does not exist")
    table, topics, unreadable = AuditTable(), set(arguments.values("topic")), 0
    for record in scan(properties, dict.fromkeys(partitions)):
        try:
            count = unpack_count(record.value)
        except ValueError:
            unreadable += 1
            continue
        if not topics or count.topic in topics:
            table.add(count)
    if unreadable:
        print(f"{unreadable} records of the audit could not be read", file=sys.stderr)
    differences = list(table.differences(from_ms, to_ms, arguments.values("group")))
    for each in differences:
        print(json.dumps({**each._asdict(), "missing": each.missing}) if arguments["json"] else line_of(each))
    if not differences and not arguments["json"]:
        print(f"No differences in {table.record_count} counts")
    return DIFFERENT if differences else 0


TOOL = Tool(
    name="audit",
    description="Names the time buckets in which a broker has not appended exactly what was produced, or a group has "
    "not consumed exactly what was appended.\n\n"
    "Producers and consumers count by the interceptors of kafkapy.client.reliable.audit, and brokers by the key "
    "kafkapy.audit.topics; docs/reliable.md describes how. If brokers do not count, the groups are compared with the "
    "producers. Ends with status 2 if there are differences.",
    run=run,
    needs_arguments=False,
    options=(
        Option("topic", "Compare only this topic; may be repeated.", "topic"),
        Option("group", "Compare only this group, also if it has counted nothing; may be repeated.", "group"),
        Option("since", "Compare only the buckets that are younger than this, such as 1d.", "duration"),
        Option(
            "settle",
            "Leave out the buckets that are younger than this, because they may be incomplete.",
            "duration",
            default="60s",
        ),
        Option("audit-topic", "The topic of the counts.", "topic", default=AUDIT_TOPIC),
        Option("json", "Print each difference as a line of JSON."),
        *CONNECTION,
    ),
    examples=(
        Example("All differences of the last day", "--since 1d -b localhost:9092"),
        Example("One group", "--topic payments --group charges -b localhost:9092"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
