"""The service `kafkapy route`: sends each record to the topics that rules choose."""

from __future__ import annotations

from pathlib import Path

from kafkapy.client.reliable.router import Router
from kafkapy.client.reliable.routing import parse_rules
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option
from kafkapy.tools.reliable.service import (
    GROUP,
    SERVICE_FLAGS,
    print_counts,
    run_until_signal,
    service_properties,
)
from kafkapy.tools.tool import run_tool


def run(arguments: Arguments) -> int:
    """Routes records until a signal arrives; returns 0, the exit code."""
    arguments.require("rules")
    table = parse_rules(Path(arguments["rules"]).read_text(), arguments.values("from"))
    if arguments["check"]:
        print(f"{len(table.rules)} rules from {', '.join(table.sources)} to {', '.join(sorted(table.targets))}")
        return 0
    arguments.require("group")
    router = Router(service_properties(arguments), arguments["group"], table, instance=arguments["instance"])
    with router.relay as relay:
        try:
            return run_until_signal("route", relay.run, relay.stop)
        finally:
            print_counts(relay.counts)


TOOL = Tool(
    name="route",
    description="Sends each record to the topics that rules choose, exactly once.\n\n"
    'The rules are a file of JSON: {"from": ["orders"], "rules": [{"name": "big", "when": ["json.amount>=1000"], "to": '
    '["orders.big"], "stop": true}], "otherwise": ["orders.rest"]}. A record goes to the topics of every rule whose '
    "conditions all hold.",
    run=run,
    options=(
        Option("rules", "The file with the rules.", "file", completes="file"),
        Option("from", "A topic to read instead of those in the file; may be repeated.", "topic"),
        GROUP,
        Option("check", "Check the rules, print a summary, and end."),
        *SERVICE_FLAGS,
    ),
    examples=(
        Example("Check a file of rules", "--rules orders.json --check"),
        Example("Route", "--rules orders.json -g orders-router -b localhost:9092"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
