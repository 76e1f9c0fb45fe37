"""The tool `kafkapy registry`: a schema registry with Confluent's HTTP API."""

from __future__ import annotations

import socket
from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.http import settings as http_settings
from kafkapy.http.command_line import Configuration, options
from kafkapy.registry.model import Level
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, ToolError
from kafkapy.tools.tool import run_tool

DEFAULT_LISTENER = "http://127.0.0.1:8081"
STORE_PREFIX = "kafkastore."
# The keys of the registry, with their defaults; those of the listener are in kafkapy.http.settings.
KEYS = {
    "kafkastore.topic": "_schemas",
    "kafkastore.topic.replication.factor": "3",
    "kafkastore.timeout.ms": "10000",
    "kafkastore.init.timeout.ms": "60000",
    "schema.registry.group.id": "schema-registry",
    "schema.compatibility.level": "BACKWARD",
    "leader.eligibility": "true",
    "host.name": "",
}
# Older names of the keys.
OLD_NAMES = {"avro.compatibility.level": "schema.compatibility.level", "master.eligibility": "leader.eligibility"}
EXTRA_MISSING = "this program needs the libraries of an extra: pip install 'kafkapy[registry]' ({})"


def run(arguments: Arguments) -> int:
    """Runs a registry until SIGINT or SIGTERM; returns the exit code 0."""
    configuration = Configuration(arguments, KEYS, (STORE_PREFIX,), OLD_NAMES)
    properties, clients = configuration.values, configuration.of_clients(STORE_PREFIX)
    level = properties["schema.compatibility.level"].upper()
    if level not in Level.__members__:
        raise ConfigError(
            f"Invalid value {level} for configuration schema.compatibility.level: accepted are {', '.join(Level)}"
        )
    settings = http_settings.read_settings(properties, DEFAULT_LISTENER)
    await_broker(clients)
    try:
        from kafkapy.http.serving import is_loopback
        from kafkapy.registry.process import serve_registry
    except ModuleNotFoundError as error:
        raise ToolError(EXTRA_MISSING.format(error)) from None
    details: dict[str, Any] = {
        "topic": properties["kafkastore.topic"],
        "replication_factor": configuration.number("kafkastore.topic.replication.factor"),
        "group": properties["schema.registry.group.id"],
        "timeout_s": configuration.number("kafkastore.timeout.ms") / 1000,
        "init_timeout_s": configuration.number("kafkastore.init.timeout.ms") / 1000,
        "level": Level(level),
        "is_eligible": properties["leader.eligibility"].lower() == "true",
        "host": properties["host.name"] or (settings.host if is_loopback(settings.host) else socket.getfqdn()),
    }
    serve_registry(clients, settings, **details)
    return 0


TOOL = Tool(
    name="registry",
    description="This program serves a schema registry with Confluent's HTTP API. The schemas are records of the "
    "topic _schemas, which Confluent's and Karapace's registries can read as well.",
    run=run,
    options=options(DEFAULT_LISTENER, "Confluent's registry"),
    examples=(
        Example("Serve a registry on the default port", "--bootstrap-server localhost:9092"),
        Example("Listen on another port", "--bootstrap-server localhost:9092 --listener http://127.0.0.1:8091"),
    ),
    needs_arguments=False,
)


def main(arguments: list[str]) -> int:
    """Runs the tool and returns its exit code."""
    return run_tool(TOOL, arguments)
