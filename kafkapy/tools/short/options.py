"""The flags that the short commands share."""

from __future__ import annotations

from typing import Any

from kafkapy.tools.bootstrap import admin_properties
from kafkapy.tools.option import Arguments, Option, UsageError, parse_key_values

SERVERS = Option(
    "bootstrap-server",
    "The brokers to connect to first, as HOST1:PORT1,HOST2:PORT2; by default those of $KAFKAPY_BOOTSTRAP_SERVERS or of "
    "the profile.",
    "servers",
    aliases=("b",),
)
CONFIG = Option(
    "command-config", "A file with the client's configuration, one key=value per line.", "config file", completes="file"
)
PROPERTY = Option(
    "command-property", "A key of the client's configuration; may be repeated.", "key=value", aliases=("X",)
)
CONNECTION = (SERVERS, CONFIG, PROPERTY)
OUTPUT_FORMATS = ("json", "table", "yaml")
NO_CLUSTER = "No cluster is named: give --bootstrap-server HOST:PORT, or set KAFKAPY_BOOTSTRAP_SERVERS or a profile\n"


def output_option(description: str) -> Option:
    """Returns the flag -o."""
    return Option("output", description, "json|table|yaml", choices=OUTPUT_FORMATS, aliases=("o",))


def output_of(arguments: Arguments) -> str | None:
    """Returns the value of -o; None without it. Raises UsageError for an unknown format."""
    output: str | None = arguments["output"]
    if output is not None and output not in OUTPUT_FORMATS:
        raise UsageError(f"{output} is not an output format: -o takes {', '.join(OUTPUT_FORMATS)}")
    return output


def connection_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the client's configuration of the flags. Raises ToolError if no broker can be reached, and UsageError if
    no cluster is named."""
    if arguments["bootstrap-server"] is None:
        raise UsageError(NO_CLUSTER)
    given = parse_key_values(arguments.values("command-property"), accepts_missing=False)
    if arguments["command-config"] is not None:
        from kafkapy.config.properties import read_properties

        given = {**read_properties(arguments["command-config"]), **given}
    return admin_properties(arguments, given=given)
