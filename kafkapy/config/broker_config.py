"""A broker's configuration: its file, the changes made while it runs, and the defaults of Apache Kafka 4.3."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from threading import RLock
from typing import Any

from kafkapy.config import consistency, role_rules, startup_rules
from kafkapy.config.broker_file import read_broker_file
from kafkapy.config.broker_keys import BrokerKeys
from kafkapy.config.controller_addresses import UNROUTABLE_HOST, Address, parse_bootstrap_servers, parse_voters
from kafkapy.config.listener import Listener, check_distinct, parse_listeners, parse_protocol_map
from kafkapy.config.row import CLUSTER_WIDE, ConfigSource
from kafkapy.config.table import BROKER_ROWS, DYNAMIC_ONLY_ROWS, STATIC_ROWS, broker_synonyms
from kafkapy.config.value import default_value, parse_value
from kafkapy.errors import ConfigError

# Values of a broker without a configuration file that differ from Kafka's defaults: one node, on loopback.
WITHOUT_FILE = {
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:9092",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "zookeeper.tree.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Values of keys that Kafka requires and the file leaves out.
WITHOUT_VALUE = {"node.id": 1, "process.roles": ["broker", "controller"], "controller.listener.names": []}


def user_data_directory(environment: Mapping[str, str] = os.environ) -> str:
    """Returns the log directory that a broker without a configuration file uses, below the user's data folder."""
    base = environment.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "kafkapy", "data")


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns a copy of the properties in which node.id and its older name broker.id are both set if one of them is."""
    texts = dict(properties)
    for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if name in texts:
            texts.setdefault(other, texts[name])
    return texts


class BrokerConfig(BrokerKeys):
    """The typed values of every broker key: `config.log_segment_bytes`, or `config[name]` for a name in a variable.

    Owns the texts of the file (`originals`) and of the dynamic configuration, and the values parsed from them.
    `apply_dynamic` replaces all values by one assignment, so that any thread may read them. A value that a caller
    stores does not follow later changes. `_lock` guards changes, which several threads may make: one applies the
    metadata, another reads the file again.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Parses and checks `properties`. Raises ConfigError for values that the broker cannot or must not serve."""
        self._lock = RLock()
        self.originals: dict[str, str] = _with_both_ids(properties)
        self.dynamic_broker: dict[str, str] = {}
        self.dynamic_default: dict[str, str] = {}
        self._static = {name: default_value(row) for name, row in DYNAMIC_ONLY_ROWS.items()} | self._parse_static()
        self._values = self._static
        self.warnings: list[str] = startup_rules.warnings_about(self.originals)
        self.controller_listener_names: list[str] = [name.upper() for name in self["controller.listener.names"]]
        self.static_voters: dict[int, Address] = parse_voters(self.controller_quorum_voters)
        self.listeners: list[Listener] = self._parse_listeners()
        advertised = self._parse_advertised()
        names = self.controller_listener_names
        self.declared_advertised_listeners = [
            each for each in (self.listeners if advertised is None else advertised) if each.name not in names
        ]
        self.advertised_controller_listeners = self._advertised_of_controller(advertised or [])
        self._advertised: list[Listener] | None = None
        startup_rules.refuse(self)
        consistency.check(self)
        self.warnings += role_rules.warnings(self)

    @classmethod
    def load(
        cls,
        path: str | None,
        overrides: Mapping[str, str] | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> BrokerConfig:
        """Returns the configuration in a file, in which `overrides` replace keys of the file.

        Without a file, returns the configuration of one node that listens on loopback. Raises ConfigError for values
        that cannot be served, and for an override whose key looks like a typing error.
        """
        startup_rules.refuse_misspelt(overrides or {})
        if path is None:
            properties = {**WITHOUT_FILE, "log.dirs": user_data_directory(environment)}
            if overrides and "broker.id" in overrides:
                del properties["node.id"]
        else:
            properties = read_broker_file(path)
        return cls({**properties, **(overrides or {})})

    def for_listener(self, listener_name: str, key: str) -> Any:
        """Returns the value of `key` for one listener.

        This is the value of `listener.name.<listener>.<key>` if it is set, otherwise the value of `key`.
        """
        text = self.text(f"listener.name.{listener_name.lower()}.{key}")
        return self[key] if text is None else parse_value(STATIC_ROWS[key], text)

    def is_default(self, key: str) -> bool:
        """Returns whether no source sets the key, so that its value is the default."""
        return self.source(key) is ConfigSource.DEFAULT

    def source(self, key: str) -> ConfigSource:
        """Returns the strongest source that sets the key itself; a source that sets a synonym does not count.

        Returns ConfigSource.DEFAULT if no source sets the key.
        """
        if key in self.dynamic_broker:
            return ConfigSource.DYNAMIC_BROKER
        if key in self.dynamic_default:
            return ConfigSource.DYNAMIC_DEFAULT_BROKER
        return ConfigSource.STATIC_BROKER if key in self.originals else ConfigSource.DEFAULT

    def has_other_than_default(self, key: str) -> bool:
        """Returns whether the key has a value that is neither its default nor empty."""
        value = self[key]
        return bool(value) and value != default_value(BROKER_ROWS[key])

    def apply_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> tuple[set[str], list[str]]:
        """Replaces the dynamic configuration: `default` applies to all brokers, `broker` to this broker only.

        Returns the keys whose value changed, and a sentence for each text that cannot be parsed. Such a text is
        ignored, as in Kafka, because refusing it would prevent the broker from starting.
        """
        with self._lock:
            return self._apply_dynamic(default, broker)

    def _apply_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> tuple[set[str], list[str]]:
        values = dict(self._static)
        complaints: list[str] = []
        for texts in (default, broker):
            for name, text in texts.items():
                row = BROKER_ROWS.get(name) or DYNAMIC_ONLY_ROWS.get(name)
                if row is None:
                    continue
                try:
                    values[name] = parse_value(row, text)
                except ConfigError as error:
                    complaints.append(str(error))
                    continue
                for weaker in broker_synonyms(name)[1:]:  # the dynamic value replaces synonyms in the file
                    values[weaker] = default_value(BROKER_ROWS[weaker])
        changed = {name for name, value in values.items() if value != self._values.get(name)}
        self.dynamic_default, self.dynamic_broker = dict(default), dict(broker)
        self._values = values
        return changed, complaints

    def check_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """Raises ConfigError if values contradict each other after `apply_dynamic(default, broker)`. Changes nothing.

        A text that cannot be parsed is ignored, as by `apply_dynamic`.
        """
        candidate = copy(self)
        candidate.apply_dynamic(default, broker)
        consistency.check_values(candidate)

    def reload(self, properties: Mapping[str, str]) -> tuple[set[str], set[str]]:
        """Applies a changed configuration file, whose content is `properties`. Only keys with the update mode
        cluster-wide change.

        Returns two sets: the keys whose value has changed, and the keys that differ in the file but can be changed only
        by a restart. Raises ConfigError, and changes nothing, if the broker cannot work with `properties`. Changes made
        through the protocol still override the file.
        """
        fresh = BrokerConfig(properties)
        with self._lock:
            return self._replace_file(fresh)

    def _replace_file(self, fresh: BrokerConfig) -> tuple[set[str], set[str]]:
        static, originals = dict(self._static), dict(self.originals)
        fixed: set[str] = set()
        for name, row in STATIC_ROWS.items():
            if fresh._static[name] == static[name] and fresh.originals.get(name) == originals.get(name):
                continue
            if row.mode is not CLUSTER_WIDE or name not in BROKER_ROWS:
                fixed.add(name)
                continue
            static[name] = fresh._static[name]
            originals.pop(name, None)
            if name in fresh.originals:
                originals[name] = fresh.originals[name]
        self._static, self.originals = static, originals
        changed, _ = self.apply_dynamic(self.dynamic_default, self.dynamic_broker)
        return changed, fixed

    @property
    def node_id(self) -> int:
        return int(self["node.id"])

    @property
    def log_dirs(self) -> list[str]:
        """The log directories, as absolute paths."""
        return [os.path.abspath(directory) for directory in self["log.dirs"] or self["log.dir"]]

    @property
    def metadata_log_dir(self) -> str:
        """The directory that contains `__cluster_metadata-0`."""
        directory = self["metadata.log.dir"]
        return os.path.abspath(directory) if directory else self.log_dirs[0]

    @property
    def broker_listeners(self) -> list[Listener]:
        """The listeners that clients may use: all except the controller's."""
        return [each for each in self.listeners if each.name not in self.controller_listener_names]

    @property
    def controller_listeners(self) -> list[Listener]:
        """The listeners of the controller.

        The records of the metadata quorum contain them; responses to clients do not.
        """
        return [each for each in self.listeners if each.name in self.controller_listener_names]

    @property
    def advertised_listeners(self) -> list[Listener]:
        """The addresses that clients receive. A listener on every interface is advertised with this machine's name."""
        if self._advertised is None:
            hostname = ""
            if any(not listener.host for listener in self.declared_advertised_listeners):
                import socket  # only such a listener needs the look-up, which may be slow

                hostname = socket.getfqdn()
            self._advertised = [
                listener if listener.host else listener._replace(host=hostname)
                for listener in self.declared_advertised_listeners
            ]
        return self._advertised

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def bootstrap_controllers(self) -> list[Address]:
        """The addresses of controllers that `controller.quorum.bootstrap.servers` lists, for a dynamic quorum."""
        return parse_bootstrap_servers(self.controller_quorum_bootstrap_servers)

    @property
    def forms_own_cluster(self) -> bool:
        """True if this node is broker and controller, and the configuration names no other controller.

        Then an unformatted directory is formatted for a new cluster, because there is no other cluster to join.
        """
        if not (self.is_broker and self.is_controller) or self.static_voters.keys() - {self.node_id}:
            return False
        own = {(host, each.port) for each in self.advertised_controller_listeners for host in (each.host, *_LOOPBACK)}
        return own.issuperset(self.bootstrap_controllers)

    @property
    def security_protocols(self) -> dict[str, str]:
        """The security protocol of each listener name."""
        return parse_protocol_map(
            self["listener.security.protocol.map"],
            is_default=self.is_default("listener.security.protocol.map"),
            listener_names=[endpoint.partition(":")[0].upper() for endpoint in self["listeners"]],
            controller_names=self.controller_listener_names,
        )

    @property
    def inter_broker_listener_name(self) -> str:
        """The name of the listener for traffic between brokers."""
        return str(self["inter.broker.listener.name"] or self["security.inter.broker.protocol"]).upper()

    def text(self, key: str) -> str | None:
        """Returns the text of the key in the strongest source that sets it; None if no source sets the key.

        The sources are, from the strongest to the weakest, the dynamic configuration of this broker, the dynamic
        configuration of all brokers, and the file. The key may begin with the prefix of a listener.
        """
        for texts in (self.dynamic_broker, self.dynamic_default, self.originals):
            if key in texts:
                return texts[key]
        return None

    def _parse_static(self) -> dict[str, Any]:
        values = {name: default_value(row) for name, row in STATIC_ROWS.items()}
        for name, text in self.originals.items():
            row = STATIC_ROWS.get(name)
            if row is not None:
                values[name] = parse_value(row, text)
        originals = self.originals
        if "node.id" in originals and "broker.id" in originals and values["node.id"] != values["broker.id"]:
            raise ConfigError(
                f"You must set `node.id` to the same value as `broker.id`: they are {originals['node.id']} and "
                f"{originals['broker.id']}"
            )
        for name, value in WITHOUT_VALUE.items():
            if values[name] is None:
                values[name] = value
        return values

    def _parse_listeners(self) -> list[Listener]:
        listeners = parse_listeners("listeners", self["listeners"], self.security_protocols)
        check_distinct("listeners", listeners, ports=True)
        return listeners

    def _parse_advertised(self) -> list[Listener] | None:
        """Returns `advertised.listeners`, including the controller's listeners; None if the key is not set."""
        if self["advertised.listeners"] is None:
            return None
        return parse_listeners("advertised.listeners", self["advertised.listeners"], self.security_protocols)

    def _advertised_of_controller(self, advertised: list[Listener]) -> list[Listener]:
        """Returns the advertised listeners of this controller, in the order of `controller.listener.names`.

        A listener that is not in `advertised` is advertised with the address that it binds to. If it binds to every
        interface, this address cannot be advertised: the first listener then gets the address that
        `controller.quorum.voters` has for this node. Every other listener, and the first one if there is no such
        address, gets an empty host.
        """
        found: list[Listener] = []
        for index, name in enumerate(self.controller_listener_names):
            listener = next((each for each in advertised if each.name == name), None)
            if listener is None:
                listener = next((each for each in self.listeners if each.name == name), None)
                if listener is None:
                    continue
                if listener.host in ("", UNROUTABLE_HOST):
                    voter = None if index else self.static_voters.get(self.node_id)
                    host, port = voter or ("", listener.port)
                    listener = listener._replace(host=host, port=port)
            found.append(listener)
        return found
