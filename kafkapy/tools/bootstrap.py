"""The connection of a tool to a broker: the flags that name the broker, the properties of the tool's client, and the
check that a broker can be reached."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafkapy.config.properties import read_properties
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError

if TYPE_CHECKING:
    from kafkapy.client.admin import QuorumDescription

# A broker that refuses connections may be starting, so connections are attempted for this long.
PATIENCE_S = 2.0
_PAUSE_S = 0.1
_CONNECT_TIMEOUT_S = 10.0

# The meaning of a flag that names the brokers of a tool's cluster.
SERVERS_HELP = (
    "The brokers to connect to first, as HOST1:PORT1,HOST2:PORT2; one that can be reached is enough. The default is "
    "$KAFKAPY_BOOTSTRAP_SERVERS, or the servers of the profile."
)
BOOTSTRAP_SERVER = Option("bootstrap-server", SERVERS_HELP, "server to connect to")
ZOOKEEPER = Option(
    "zookeeper",
    "The address of a listener for ZooKeeper's clients, or of ZooKeeper, as HOST:PORT[,HOST:PORT...][/CHROOT], as in "
    "Kafka's older releases. The tool finds the brokers in /brokers/ids there, and works through them.",
    "hosts",
    is_deprecated=True,
)
# The same flag of tools whose older releases took it in addition to the brokers.
ZOOKEEPER_AND_SERVERS = replace(
    ZOOKEEPER, description=f"{ZOOKEEPER.description} It is ignored if brokers are given in addition."
)
COMMAND_CONFIG = Option(
    "command-config",
    "A file with the client's configuration, one key=value per line.",
    "config file",
    completes="file",
)
JSON = Option("json", "Print the result as JSON.", is_ours=True)


def admin_properties(
    arguments: Arguments, config: str = "command-config", *, given: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns the properties of an admin client, with the servers of --bootstrap-server or --bootstrap-controller.

    The other properties are `given` or, if that is None, those in the file that the flag `config` names. Raises
    ToolError if no broker can be reached, and ConfigError if the file cannot be read.
    """
    properties: dict[str, Any] = dict(given or {})
    if given is None and arguments[config] is not None:
        properties.update(read_properties(arguments[config]))
    if arguments["bootstrap-server"] is not None:
        properties["bootstrap.servers"] = arguments["bootstrap-server"]
    if arguments.declares("bootstrap-controller") and arguments["bootstrap-controller"] is not None:
        properties["bootstrap.controllers"] = arguments["bootstrap-controller"]
    await_broker(properties)
    return properties


def await_broker(properties: Mapping[str, Any], patience_s: float = PATIENCE_S) -> None:
    """Returns when one of `bootstrap.servers` or `bootstrap.controllers` accepts a connection.

    Without this check a client would try to connect without end. Raises ToolError, with the reason for each address, if
    none accepts a connection within `patience_s`.
    """
    addresses = str(properties.get("bootstrap.controllers") or properties.get("bootstrap.servers", ""))
    servers = [each.strip() for each in addresses.split(",") if each.strip()]
    failures = connection_failures(servers, patience_s)
    if failures:
        noun = "server" if len(servers) == 1 else "servers"
        raise ToolError(f"Connection to the bootstrap {noun} could not be established ({'; '.join(failures)}).")


def connection_failures(servers: Sequence[str], patience_s: float = PATIENCE_S) -> list[str]:
    """Returns "HOST:PORT: reason" for each server if none accepts a connection within `patience_s`, otherwise [].

    Raises ToolError for a text that is not HOST:PORT.
    """
    deadline = time.monotonic() + patience_s
    while True:
        failures: list[str] = []
        for server in servers:
            failure = _failure(server)
            if failure is None:
                return []
            failures.append(f"{server}: {failure}")
        if not servers or time.monotonic() >= deadline:
            return failures
        time.sleep(_PAUSE_S)


def controller_addresses(quorum: QuorumDescription) -> list[str]:
    """Returns the address, as HOST:PORT, of the first listener of each voter.

    All voters are included, because another one may become active while a tool runs.
    """
    listeners = [next(iter(each.values())) for each in quorum.listeners.values() if each]
    return [f"{host}:{port}" for host, port in listeners]


def _failure(server: str) -> str | None:
    """Returns why an address cannot be reached; None if it can."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit():
        raise ToolError(f"Invalid url in bootstrap.servers: {server} (expected HOST:PORT)")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except (socket.gaierror, UnicodeError):
        return "the name cannot be resolved"
    except OSError as error:
        return error.strerror or str(error)
    return None


def check_servers(servers: str) -> None:
    """Raises UsageError, with Kafka's text, unless `servers` is a list of addresses."""
    if not servers:
        raise UsageError("Error while validating the bootstrap address\n")
    for server in servers.split(","):
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError("Please provide valid host:port like host1:9091,host2:9092\n ")
