"""The addresses of a cluster's brokers, from their registrations in ZooKeeper."""

from __future__ import annotations

import json
from typing import Any

from kafkapy.decimal_text import is_number
from kafkapy.tools.option import ToolError
from kafkapy.tools.zookeeper.client import PATIENCE_S, ZooKeeperClient
from kafkapy.tools.zookeeper.errors import NO_NODE, ConnectError, ZooKeeperRequestError

BROKERS_PATH = "/brokers/ids"


def connected(connect_string: str, patience_s: float = PATIENCE_S) -> ZooKeeperClient:
    """Returns a client that has opened a session.

    Raises ToolError if no server accepts a session within `patience_s` seconds, or if the connect string is invalid.
    """
    try:
        client = ZooKeeperClient(connect_string)
        client.connect(patience_s)
    except (ValueError, ConnectError) as error:
        what = f"Connection to ZooKeeper at {connect_string} could not be established"
        raise ToolError(f"{what} ({error}).") from None
    return client


def servers_in_zookeeper(connect_string: str, protocol: str = "PLAINTEXT", patience_s: float = PATIENCE_S) -> str:
    """Returns the brokers' addresses for clients of a security protocol, as host:port,host:port.

    Raises ToolError if ZooKeeper cannot be reached, and if it has no broker with such a listener.
    """
    client = connected(connect_string, patience_s)
    try:
        registrations = read_registrations(client)
    except ZooKeeperRequestError as error:
        raise ToolError(f"Reading {BROKERS_PATH} of ZooKeeper at {connect_string} failed: {error}") from None
    finally:
        client.close()
    if not registrations:
        raise ToolError(f"No broker is registered in {BROKERS_PATH} of ZooKeeper at {connect_string}.")
    servers = [each for registration in registrations.values() for each in endpoints(registration, protocol)]
    if not servers:
        raise ToolError(f"No broker in {BROKERS_PATH} of ZooKeeper at {connect_string} has a {protocol} listener.")
    return ",".join(servers)


def read_registrations(client: ZooKeeperClient) -> dict[int, dict[str, Any]]:
    """Returns the JSON object that each broker has registered in ZooKeeper, by broker id in ascending order."""
    try:
        names, _ = client.children(BROKERS_PATH)
    except ZooKeeperRequestError as error:
        if error.code == NO_NODE:
            return {}
        raise
    found = {}
    for broker_id in sorted(int(name) for name in names if is_number(name)):
        try:
            value = json.loads(client.get(f"{BROKERS_PATH}/{broker_id}")[0] or b"")
        except ZooKeeperRequestError as error:
            if error.code == NO_NODE:  # the broker has ended
                continue
            raise
        except ValueError:
            continue
        if isinstance(value, dict):
            found[broker_id] = value
    return found


def endpoints(registration: dict[str, Any], protocol: str) -> list[str]:
    """Returns the addresses, host:port, of a broker's listeners with a security protocol.

    Registrations of Kafka 0.8 have no endpoints, but the host and port of the only listener, which is PLAINTEXT.
    """
    listed = registration.get("endpoints")
    if listed is None:
        is_plain = protocol == "PLAINTEXT" and registration.get("host") is not None
        return [f"{registration['host']}:{registration.get('port')}"] if is_plain else []
    protocols = registration.get("listener_security_protocol_map") or {}
    pairs = [str(each).partition("://")[::2] for each in listed]
    return [address for name, address in pairs if protocols.get(name, name) == protocol]
