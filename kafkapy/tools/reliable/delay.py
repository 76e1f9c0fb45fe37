"""The service `kafkapy delay`: keeps records until they are due, and sends each exactly once."""

from __future__ import annotations

from kafkapy.client.reliable.delay_service import DEFAULT_PARTITIONS, GROUP, MOST_PENDING, DelayService
from kafkapy.client.reliable.delayed_records import DELAY_TOPIC
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, UsageError
from kafkapy.tools.reliable.service import (
    SERVICE_FLAGS,
    duration_s,
    print_counts,
    run_until_signal,
    service_properties,
)
from kafkapy.tools.tool import run_tool


def run(arguments: Arguments) -> int:
    """Serves until a signal arrives, and prints the counts of records; returns 0, the exit code."""
    for name in ("partitions", "max-pending"):
        if arguments[name] < 1:
            raise UsageError(f"--{name} must be at least 1")
    with DelayService(
        service_properties(arguments),
        topic=arguments["topic"],
        group=arguments["group"],
        partitions=arguments["partitions"],
        most_pending=arguments["max-pending"],
        most_delay_ms=round(duration_s(arguments["max-delay"]) * 1000),
        instance=arguments["instance"],
    ) as service:
        try:
            return run_until_signal("delay", service.run, service.stop)
        finally:
            print_counts({**service.counts, "pending": service.pending_count})


TOOL = Tool(
    name="delay",
    description="Keeps records until they are due, and sends each exactly once to its topic.\n\n"
    f"A record in {DELAY_TOPIC} has the headers kafkapy.target (a topic) and kafkapy.deliver-at (milliseconds since "
    "1970) or kafkapy.delay-ms. With kafkapy.delay-id it can be replaced, or cancelled by a record with the same key "
    "and id and the header kafkapy.delay-cancel. docs/reliable.md describes the pattern.",
    run=run,
    needs_arguments=False,
    options=(
        Option(
            "topic",
            "The topic that delayed records are written to; created if it is missing.",
            "topic",
            default=DELAY_TOPIC,
        ),
        Option("group", "The group of the service; its processes share the partitions.", "group", default=GROUP),
        Option("partitions", "The partitions of a topic that is created.", "number", INTEGER, DEFAULT_PARTITIONS),
        Option(
            "max-pending",
            "The largest number of pending records: with so many, this process reads no more until some were sent.",
            "records",
            INTEGER,
            MOST_PENDING,
        ),
        Option("max-delay", "The longest delay; longer ones become dead letters.", "duration", default="366d"),
        *SERVICE_FLAGS,
    ),
    examples=(
        Example("Serve the default topic", "-b localhost:9092"),
        Example("Continue at once after a crash", "-b localhost:9092 --instance delay-1"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
