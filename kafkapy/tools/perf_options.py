"""The parts that the performance tools of consumers and of share consumers have in common: flags and configuration."""

from __future__ import annotations

from typing import Any

from kafkapy.config.properties import read_properties
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option, parse_key_values

OPTIONS = (
    Option("socket-buffer-size", "receive.buffer.bytes: the size of the socket's buffer.", "size", INTEGER, 2097152),
    Option(
        "consumer.config",
        "(DEPRECATED) Use --command-config instead.",
        "config file",
        is_deprecated=True,
        completes="file",
    ),
    Option("command-config", "A file with the configuration of consumers.", "config file", completes="file"),
    Option(
        "timeout",
        "The longest time in milliseconds without a record.",
        "milliseconds",
        LONG,
        10000,
        argument_is_optional=True,
    ),
    Option("messages", "(DEPRECATED) Use --num-records instead.", "count", LONG, is_deprecated=True),
    Option("num-records", "REQUIRED: The number of records to read.", "count", LONG),
    Option("reporting-interval", "The milliseconds between progress lines.", "interval_ms", default="5000"),
    Option(
        "date-format",
        "The format of times, as in java.text.SimpleDateFormat.",
        "date format",
        default="yyyy-MM-dd HH:mm:ss:SSS",
    ),
    Option("hide-header", "Do not print the header."),
)


def warn_of_deprecated_flags(arguments: Arguments) -> None:
    """Prints a warning for each deprecated flag that the user gave."""
    if arguments.has("messages"):
        print("Warning: --messages is deprecated. Use --num-records instead.")
    if arguments.has("consumer.config"):
        print("Warning: --consumer.config is deprecated. Use --command-config instead.")


def record_count(arguments: Arguments) -> int:
    """Returns the number of records to read: the value of --num-records, or else of the deprecated --messages."""
    return int(arguments["num-records" if arguments.has("num-records") else "messages"])


def read_configuration(arguments: Arguments, client_id: str) -> dict[str, Any]:
    """Returns the consumer's configuration: a file, then --command-property, then the tool's own flags; the last wins.

    The file is the one of --command-config or --consumer.config. Keys and values are read as bytes. `client_id` is used
    as `client.id` unless the file or --command-property sets one.
    """
    config = "consumer.config" if arguments.has("consumer.config") else "command-config"
    properties: dict[str, Any] = read_properties(arguments[config]) if arguments.has(config) else {}
    properties.update(parse_key_values(arguments.values("command-property")))
    properties |= {
        "bootstrap.servers": arguments["bootstrap-server"],
        "receive.buffer.bytes": str(arguments["socket-buffer-size"]),
        "key.deserializer": "bytes",
        "value.deserializer": "bytes",
        "check.crcs": "false",
    }
    properties.setdefault("client.id", client_id)
    return properties
