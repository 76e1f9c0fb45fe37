"""Listeners: `NAME://host:port` lists and their security protocols."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PROTOCOLS_WITH_TLS = frozenset({"SSL", "SASL_SSL"})
# The name of the listener for ZooKeeper's clients in the prefix of its keys.
ZOOKEEPER_LISTENER_NAME = "ZOOKEEPER"
_ANY_HOST = ("", "0.0.0.0", "::")
_ENDPOINT = re.compile(
    r"(?P<name>[^:/]*)://(?:\[(?P<ipv6>[0-9a-fA-F:.%\w]*)\]|(?P<host>[0-9a-zA-Z\-%._]*)):(?P<port>\d+)"
)


class Listener(NamedTuple):
    """An address to listen on or to advertise. An empty host means every interface, port 0 any free port."""

    name: str
    security_protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_listeners(key: str, endpoints: Iterable[str], protocols: Mapping[str, str]) -> list[Listener]:
    """Parses listeners `NAME://host:port`; `protocols` has the security protocol of each name.

    `key` is the configuration key of the list. Raises ConfigError, which names the key and the endpoint, for an
    endpoint that cannot be parsed.
    """
    listeners: list[Listener] = []
    endpoints = list(endpoints)
    problem = f"Error creating broker listeners from '[{', '.join(endpoints)}]' ({key})"
    for endpoint in endpoints:
        match = _ENDPOINT.fullmatch(endpoint)
        if match is None or not match["name"] or int(match["port"]) > 65535:
            raise ConfigError(
                f"{problem}: Unable to parse {endpoint} to a broker endpoint; accepted is LISTENER_NAME://host:port, "
                "an IPv6 address in brackets, port 0 to 65535"
            )
        name = match["name"].upper()
        if name not in protocols:
            raise ConfigError(
                f"{problem}: No security protocol defined for listener {name}; add it to listener.security.protocol.map"
            )
        listeners.append(Listener(name, protocols[name], match["ipv6"] or match["host"] or "", int(match["port"])))
    return listeners


def check_distinct(key: str, listeners: Sequence[Listener], *, ports: bool) -> None:
    """Raises ConfigError, which names `key`, if two listeners have the same name.

    If `ports`, also raises ConfigError if listeners have the same port. Port 0 is excepted, and so is a pair of
    listeners of which one has an IPv6 address, and the other an IPv4 address or a host name.
    """
    shown = ",".join(map(str, listeners))
    if len({listener.name for listener in listeners}) != len(listeners):
        raise ConfigError(f"Each listener must have a different name, {key}: {shown}")
    if not ports:
        return
    seen: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port:
            seen.setdefault(listener.port, []).append(listener)
    for sharing in seen.values():
        families = {":" in listener.host for listener in sharing}
        if len(sharing) > 2 or (len(sharing) == 2 and (len(families) == 1 or any(not each.host for each in sharing))):
            raise ConfigError(f"Each listener must have a different port, {key}: {shown}")


def parse_protocol_map(
    text: str, *, is_default: bool, listener_names: Iterable[str], controller_names: Sequence[str]
) -> dict[str, str]:
    """Parses `text`, a map `NAME:PROTOCOL,...`, and returns the security protocol of each listener name.

    If `text` is the default map (`is_default`) and no listener in `listener_names` and `controller_names` uses TLS or
    SASL, controller listeners without an entry are PLAINTEXT, as in Kafka. Raises ConfigError for another form.
    """
    key = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for element in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = (part.strip() for part in element.partition(":"))
        if not name or protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"Invalid value {text} for configuration {key}: {element} is not LISTENER_NAME:PROTOCOL with one of "
                f"the protocols {', '.join(SECURITY_PROTOCOLS)}"
            )
        if name.upper() in protocols:
            raise ConfigError(f"Invalid value {text} for configuration {key}: {name} is listed twice")
        protocols[name.upper()] = protocol.upper()
    names = [*listener_names, *controller_names]
    secure = any(protocols.get(name, "PLAINTEXT") != "PLAINTEXT" for name in names)
    if is_default and not secure:
        for name in controller_names:
            protocols.setdefault(name, "PLAINTEXT")
    return protocols


def own_address(listeners: Sequence[Listener], *, is_secured: bool) -> str | None:
    """Returns the address, as HOST:PORT, at which a client on this host connects to a broker.

    `listeners` are the broker's listeners for clients. If `is_secured` is True, because the client has a configuration
    for TLS or SASL, this is the address of the first listener. Otherwise it is the address of the first PLAINTEXT
    listener, or None if there is none.
    """
    for listener in listeners:
        if is_secured or listener.security_protocol == "PLAINTEXT":
            host = "localhost" if listener.host in _ANY_HOST else listener.host
            return f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}"
    return None
