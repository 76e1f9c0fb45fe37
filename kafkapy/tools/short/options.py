"""The flags that the short commands share."""

from __future__ import annotations

from typing import Any

from kafkapy.tools.bootstrap import COMMAND_CONFIG, SERVERS_HELP, admin_properties
from kafkapy.tools.option import Arguments, Option, UsageError, parse_key_values

SERVERS = Option("bootstrap-server", SERVERS_HELP, "servers", aliases=("b",))
PROPERTY = Option(
    "command-property", "A key of the client's configuration; may be repeated.", "key=value", aliases=("X",)
)
CONNECTION = (SERVERS, COMMAND_CONFIG, PROPERTY)
OUTPUT_FORMATS = ("json", "table", "yaml")
NO_CLUSTER = (
    "No cluster is named: give --bootstrap-server HOST:PORT, or set KAFKAPY_BOOTSTRAP_SERVERS, or create a profile\n"
)


def output_option(description: str) -> Option:
    """Returns the flag `--output` (-o), which selects the output format; `description` is its help text."""
    return Option("output", description, "json|table|yaml", choices=OUTPUT_FORMATS, aliases=("o",))


def output_of(arguments: Arguments) -> str | None:
    """Returns the value of `--output`, or None if it is not given. Raises UsageError for an unknown format."""
    output: str | None = arguments["output"]
    if output is not None and output not in OUTPUT_FORMATS:
        raise UsageError(f"{output} is not an output format: -o takes {', '.join(OUTPUT_FORMATS)}")
    return output


def connection_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the client's configuration that the flags name.

    Raises ToolError if no broker can be reached, and UsageError if no cluster is named.
    """
    if arguments["bootstrap-server"] is None:
        raise UsageError(NO_CLUSTER)
    given = parse_key_values(arguments.values("command-property"), accepts_missing=False)
    if arguments["command-config"] is not None:
        from kafkapy.config.properties import read_properties

        given = {**read_properties(arguments["command-config"]), **given}
    return admin_properties(arguments, given=given)
