"""The command `kafkapy redrive`: moves dead letters back to the topics that they came from."""

from __future__ import annotations

from kafkapy.client import ConsumerRecord
from kafkapy.client.reliable.conditions import parse_condition
from kafkapy.client.reliable.redrive import Redrive
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import LONG, Arguments, Option, UsageError
from kafkapy.tools.reliable.service import print_counts, service_properties
from kafkapy.tools.short.options import CONNECTION
from kafkapy.tools.tool import run_tool


def run(arguments: Arguments) -> int:
    """Moves the records and prints the counts; returns 0, the exit code."""
    arguments.require("from")
    conditions = [parse_condition(each) for each in arguments.values("where")]
    if arguments["count"] is not None and arguments["count"] < 0:
        raise UsageError(f"{arguments['count']} is not a number of records")

    def show(record: ConsumerRecord, target: str) -> None:
        print(f"{record.topic}-{record.partition}@{record.offset} -> {target}")

    is_dry = arguments["dry-run"]
    redrive = Redrive(
        service_properties(arguments),
        arguments["from"],
        conditions=conditions,
        target=arguments["to"],
        most=arguments["count"],
        on_record=show if is_dry or arguments["verbose"] else None,
    )
    counts = dict(redrive.run(is_dry=is_dry))
    counts.pop("chosen", None)
    if is_dry:
        counts["would_move"] = counts.pop("moved", 0)
    print_counts({"moved": 0} | counts if not is_dry else counts)
    return 0


TOOL = Tool(
    name="redrive",
    description="Moves dead letters back to the topics that they came from.\n\n"
    "A record is moved once: a second run moves only what is new, or what the conditions of the first run left out. "
    "The origin is read from the headers of kafkapy, of Spring and of Kafka Connect.",
    run=run,
    options=(
        Option("from", "The topic with the dead letters.", "topic"),
        Option("to", "The topic to move to, instead of the one in a record's headers.", "topic"),
        Option(
            "where",
            "Move only records that meet this condition, such as key=a, header.type=order or json.amount>=100; may be "
            "repeated. Operators are = != ^= (begins with) $= (ends with) ~ (contains) < <= > >=; a field alone means "
            "that the record has it, !FIELD that it lacks it.",
            "condition",
        ),
        Option("count", "Move at most this many records.", "records", LONG, aliases=("n",)),
        Option("dry-run", "Print which records would be moved, and move none."),
        Option("verbose", "Print each record that is moved."),
        *CONNECTION,
    ),
    examples=(
        Example("See what would be moved", "--from payments.dlt --dry-run"),
        Example(
            "Move what failed because of a time-out",
            "--from payments.dlt --where header.kafkapy.retry.error~TimeoutError",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
