"""The service `kafkapy retry`: passes records to a handler, and moves failed ones to retry topics and dead letters."""

from __future__ import annotations

from kafkapy.client.reliable.handler_process import load_handler
from kafkapy.client.reliable.isolated_handler import IsolatedHandler
from kafkapy.client.reliable.processor import Handler, Processor
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option
from kafkapy.tools.reliable.service import (
    GROUP,
    SERVICE_FLAGS,
    duration_s,
    durations_s,
    print_counts,
    run_until_signal,
    service_properties,
)
from kafkapy.tools.tool import run_tool


def run(arguments: Arguments) -> int:
    """Processes records until a signal arrives; returns 0, the exit code."""
    arguments.require("topic", "group", "handler")
    delays = durations_s(arguments["delays"])
    timeout_s = duration_s(arguments["handler-timeout"])
    isolated = None if arguments["in-process"] else IsolatedHandler(arguments["handler"], timeout_s)
    handler: Handler = load_handler(arguments["handler"]) if isolated is None else isolated
    properties = service_properties(arguments)
    try:
        with Processor(
            handler,
            topics=arguments.values("topic"),
            group=arguments["group"],
            properties=properties,
            retries=delays,
            keeps_order=arguments["keep-order"],
            instance=arguments["instance"],
            creates_topics=not arguments["no-create"],
        ) as processor:
            try:
                return run_until_signal("retry", processor.run, processor.stop)
            finally:
                print_counts(processor.counts)
    finally:
        if isolated is not None:
            isolated.close()


TOOL = Tool(
    name="retry",
    description="Passes the records of topics to a function, and retries those for which it fails.\n\n"
    "A failed record moves to TOPIC.retry.1, TOPIC.retry.2 and so on, and after the last delay to TOPIC.dlt. What the "
    "function returns is sent in the same transaction. docs/reliable.md describes the pattern.",
    run=run,
    options=(
        Option("topic", "A topic to read; may be repeated.", "topic", aliases=("t",)),
        GROUP,
        Option(
            "handler",
            "The Python function, which gets a Delivery and returns the Outputs to send, or None.",
            "module:function",
        ),
        Option(
            "delays",
            "The delays before the second attempt, the third and so on, separated by commas.",
            "durations",
            default="5s,1m,10m",
        ),
        Option("keep-order", "Let a record wait while an earlier record with its key is in a retry topic."),
        Option(
            "handler-timeout",
            "The time after which the function's process is killed and the attempt has failed.",
            "duration",
            default="60s",
        ),
        Option("in-process", "Call the function in this process, without a time limit: faster, but it must not hang."),
        Option("no-create", "Do not create the topics for retries and dead letters."),
        *SERVICE_FLAGS,
    ),
    examples=(
        Example("Call `handle` of charges.py, with three retries", "-t payments -g charges --handler charges:handle"),
        Example(
            "Keep the order of records with the same key",
            "-t orders -g stock --handler stock:book --delays 1s,30s --keep-order",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
