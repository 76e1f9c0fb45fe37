"""The nodes of a sandbox: roles, ports, directories and configuration files; stored as `sandbox.json`."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kafkapy.named_tuple import NamedTuple
from kafkapy.types import random_uuid, uuid_to_string

FILE_NAME = "sandbox.json"
HOST = "localhost"
BROKER, CONTROLLER = "broker", "controller"
Roles = tuple[str, ...]
_BOTH: Roles = (BROKER, CONTROLLER)
_BROKER_ONLY: Roles = (BROKER,)
_CONTROLLER_ONLY: Roles = (CONTROLLER,)
BROKER_LISTENER, CONTROLLER_LISTENER = "PLAINTEXT", "CONTROLLER"
# Kafka's default replication factor of internal topics; the limit is the number of brokers.
_INTERNAL_REPLICATION = 3
_INTERNAL_TOPICS = ("offsets.topic", "transaction.state.log")


class NodePlan(NamedTuple):
    """One node of a sandbox. The object does not change after its construction.

    `port` is the port of the broker's listener, and `controller_port` is the port of the controller's listener; a port
    is 0 if the node does not have the role. `directory_id` is the id of the node's log directory.
    """

    node_id: int
    roles: Roles
    port: int
    controller_port: int
    directory_id: str

    @property
    def is_broker(self) -> bool:
        return BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.roles

    @property
    def listeners(self) -> list[str]:
        """The listeners of the node, as `NAME://host:port`."""
        found = [f"{BROKER_LISTENER}://{HOST}:{self.port}"] if self.is_broker else []
        return found + ([f"{CONTROLLER_LISTENER}://{HOST}:{self.controller_port}"] if self.is_controller else [])


class Layout(NamedTuple):
    """All nodes of a sandbox. `properties` are keys and values for every node's configuration, which take precedence
    over the values that the sandbox sets."""

    cluster_id: str
    nodes: tuple[NodePlan, ...]
    properties: dict[str, str]

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, as `host:port`, separated by commas."""
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes if node.is_broker)

    @property
    def controllers(self) -> tuple[NodePlan, ...]:
        return tuple(node for node in self.nodes if node.is_controller)

    @property
    def shape(self) -> list[Roles]:
        """The roles of every node, in the order of the node ids.

        The data of an earlier run can be used only if its layout has the same roles.
        """
        return [node.roles for node in self.nodes]

    def settings(self, node: NodePlan, directory: Path) -> dict[str, str]:
        """Returns the configuration of a node whose log directory is `directory`."""
        brokers = sum(each.is_broker for each in self.nodes)
        factor = min(_INTERNAL_REPLICATION, brokers)
        servers = ",".join(f"{HOST}:{each.controller_port}" for each in self.controllers)
        settings = {
            "process.roles": ",".join(node.roles),
            "node.id": str(node.node_id),
            "controller.quorum.bootstrap.servers": servers,
            "controller.listener.names": CONTROLLER_LISTENER,
            "listeners": ",".join(node.listeners),
            "log.dirs": str(directory),
            "default.replication.factor": str(factor),
            "group.initial.rebalance.delay.ms": "0",
        }
        if node.is_broker:
            settings["inter.broker.listener.name"] = BROKER_LISTENER
        for topic in _INTERNAL_TOPICS:
            settings[f"{topic}.replication.factor"] = str(factor)
            if topic != "offsets.topic":
                settings[f"{topic}.min.isr"] = str(min(2, factor))
        return settings | self.properties


def roles_of(nodes: int | None, controllers: int | None, brokers: int | None) -> list[Roles]:
    """Returns the roles of each node: `nodes` nodes with both roles (3 by default), or `controllers` and `brokers` with
    one role.

    Raises ValueError if `nodes` is given together with `controllers` or `brokers`, if only one of `controllers` and
    `brokers` is given, or if a number is below 1.
    """
    if controllers is None and brokers is None:
        count = 3 if nodes is None else nodes
        if count < 1:
            raise ValueError("a cluster has at least one node")
        return [_BOTH] * count
    if nodes is not None:
        raise ValueError("--nodes are both controllers and brokers: give --nodes, or --controllers and --brokers")
    if not controllers or not brokers or min(controllers, brokers) < 1:
        raise ValueError("--controllers and --brokers are given together, at least one of each")
    return [_CONTROLLER_ONLY] * controllers + [_BROKER_ONLY] * brokers


def make_layout(roles: list[Roles], first_port: int, properties: Mapping[str, str]) -> Layout:
    """Returns the layout of a new sandbox, with new ids.

    The brokers listen on the ports from `first_port` on, and the controllers on the ports after the brokers' ports. If
    `first_port` is 0, all of them listen on free ports.
    """
    count = sum(len(each) for each in roles)
    ports = iter(free_ports(count) if first_port == 0 else range(first_port, first_port + count))
    broker_ports = [next(ports) if BROKER in each else 0 for each in roles]
    controller_ports = [next(ports) if CONTROLLER in each else 0 for each in roles]
    nodes = tuple(
        NodePlan(index + 1, each, broker_ports[index], controller_ports[index], uuid_to_string(random_uuid()))
        for index, each in enumerate(roles)
    )
    return Layout(uuid_to_string(random_uuid()), nodes, dict(properties))


def free_ports(count: int) -> list[int]:
    """Returns `count` ports on which no process listens now."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


def write_layout(directory: Path, layout: Layout, running: Mapping[str, Any] | None = None) -> None:
    """Writes `sandbox.json`, atomically. `running` has the process id and the socket path of the running sandbox; None
    if it does not run."""
    fields = {
        "cluster.id": layout.cluster_id,
        "nodes": [node._asdict() for node in layout.nodes],
        "properties": layout.properties,
        "running": running,
    }
    part = directory / f"{FILE_NAME}.part"
    part.write_text(json.dumps(fields, indent=2) + "\n")
    part.replace(directory / FILE_NAME)


def read_layout(directory: Path) -> tuple[Layout, dict[str, Any]] | None:
    """Returns the layout in `sandbox.json`, and a dict about the running sandbox; None if the file does not exist.

    The dict has the process id ("pid") and the socket path ("socket"); it is {} if the sandbox does not run. Raises
    ValueError, which names the path, if the file cannot be used.
    """
    path = directory / FILE_NAME
    try:
        fields = json.loads(path.read_text())
        nodes = tuple(NodePlan(**{**each, "roles": tuple(each["roles"])}) for each in fields["nodes"])
        return Layout(fields["cluster.id"], nodes, fields["properties"]), fields["running"] or {}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read ({error}); begin again with --fresh") from None
