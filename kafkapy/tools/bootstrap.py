"""How a tool comes to its client: the flags for it, the properties, and whether a broker is there at all."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import Any

from kafkapy.config.properties import read_properties
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError

# How long a broker that refuses connections is waited for: it may just be starting.
PATIENCE_S = 2.0
_PAUSE_S = 0.1
_CONNECT_TIMEOUT_S = 10.0

BOOTSTRAP_SERVER = Option(
    "bootstrap-server",
    "REQUIRED: The brokers to ask first, as HOST1:PORT1,HOST2:PORT2. One that answers is enough.",
    "server to connect to",
)
COMMAND_CONFIG = Option(
    "command-config",
    "A file with configuration keys for the client, one key=value on a line.",
    "config file",
    completes="file",
)
JSON = Option("json", "Print the result as JSON.", is_ours=True)


def admin_properties(arguments: Arguments, config: str = "command-config") -> dict[str, Any]:
    """The properties of an admin client by --bootstrap-server and the flag `config`; the broker is there.

    ToolError if it is not, ConfigError for a file that cannot be read.
    """
    properties: dict[str, Any] = {}
    if arguments[config] is not None:
        properties.update(read_properties(arguments[config]))
    if arguments["bootstrap-server"] is not None:
        properties["bootstrap.servers"] = arguments["bootstrap-server"]
    await_broker(properties)
    return properties


def refuse_controllers(arguments: Arguments) -> None:
    """ToolError for --bootstrap-controller: we have no client of controllers."""
    if arguments.has("bootstrap-controller"):
        raise ToolError("kafkapy speaks to brokers: use --bootstrap-server")


def await_broker(properties: Mapping[str, Any], patience_s: float = PATIENCE_S) -> None:
    """Returns once one of `bootstrap.servers` takes a connection.

    A client would go on trying for ever; a tool whose broker is not there says so. ToolError with the reason that the
    last address gave.
    """
    servers = [each.strip() for each in str(properties.get("bootstrap.servers", "")).split(",") if each.strip()]
    deadline = time.monotonic() + patience_s
    while servers:
        reason = ""
        for server in servers:
            failure = _failure(server)
            if failure is None:
                return
            reason = f"{server}: {failure}"
        if time.monotonic() >= deadline:
            raise ToolError(f"Connection to node -1 could not be established. Node may not be available ({reason}).")
        time.sleep(_PAUSE_S)


def _failure(server: str) -> str | None:
    """Why an address cannot be reached; None if it can."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit():
        raise ToolError(f"Invalid url in bootstrap.servers: {server}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except socket.gaierror:
        return "the name cannot be resolved"
    except OSError as error:
        return error.strerror or str(error)
    return None


def check_servers(servers: str) -> None:
    """UsageError for what is no list of addresses, in Kafka's words."""
    if not servers:
        raise UsageError("Error while validating the bootstrap address\n")
    for server in servers.split(","):
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError("Please provide valid host:port like host1:9091,host2:9092\n ")
