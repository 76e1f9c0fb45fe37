"""The addresses of controllers in `controller.quorum.voters` and `controller.quorum.bootstrap.servers`.

Errors have Kafka's wording (QuorumConfig).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"
UNROUTABLE_HOST = "0.0.0.0"
# Patterns are compiled at their first use, which most starts do not reach.
_CONTROLLER_ADDRESS = r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)"
INTEGER = r"[-+]?[0-9]{1,10}"


class Address(NamedTuple):
    """The address of a controller."""

    host: str
    port: int


def parse_voters(entries: Iterable[str]) -> dict[int, Address]:
    """Returns the address of each voter by node id; an entry is `id@host:port`. Raises ConfigError for another form."""
    voters: dict[int, Address] = {}
    for entry in entries:
        node, *rest = entry.rstrip("@").split("@")
        if len(rest) != 1:
            raise ConfigError(
                f"Invalid configuration value for {VOTERS}. Each entry should be in the form "
                "`{id}@{host}:{port}`."
            )
        if not re.fullmatch(INTEGER, node):
            raise ConfigError(f"Failed to parse voter ID as an integer from {node}")
        address = _parse_address(rest[0])
        if address is None:
            raise ConfigError(
                f"Failed to parse host name from entry {entry} for the configuration {VOTERS}. Each entry should be in "
                "the form `{id}@{host}:{port}`."
            )
        voters[int(node)] = address
    return voters


def parse_bootstrap_servers(entries: Iterable[str]) -> list[Address]:
    """Returns the addresses in `entries`, each of which is `host:port`. Raises ConfigError for another form."""
    addresses = []
    for entry in entries:
        address = _parse_address(entry)
        if address is None:
            raise ConfigError(
                f"Failed to parse host name from {entry} for the configuration {BOOTSTRAP_SERVERS}. Each entry should "
                'be in the form "{host}:{port}"'
            )
        addresses.append(address)
    return addresses


def _parse_address(text: str) -> Address | None:
    """Parses `host:port` and returns the address; None if the text has another form.

    Raises ConfigError for a port above 65535.
    """
    match = re.fullmatch(_CONTROLLER_ADDRESS, text)
    if match is None:
        return None
    port = int(match[2])
    if port > 65535:
        raise ConfigError(f"port out of range:{port}")
    return Address(match[1], port)


class _Voters:
    """A validator that accepts entries `id@host:port`."""

    def __call__(self, name: str, value: list[str]) -> None:
        parse_voters(value)

    def __str__(self) -> str:
        return "non-empty list"


class _BootstrapServers:
    """A validator that accepts entries `host:port`."""

    def __call__(self, name: str, value: list[str]) -> None:
        parse_bootstrap_servers(value)

    def __str__(self) -> str:
        return "non-empty list"


VOTER_LIST = _Voters()
BOOTSTRAP_SERVER_LIST = _BootstrapServers()
