"""The security of this node's connections to other nodes: the keys of the listeners that it connects to.

Connections to brokers use `inter.broker.listener.name` and `sasl.mechanism.inter.broker.protocol`; those to controllers
the first of `controller.listener.names` and `sasl.mechanism.controller.protocol`. User name and password are those of
the listener's own JAAS configuration, as in Apache Kafka.
"""

from __future__ import annotations

import os
from typing import Any

from kafkapy.client.connection_security import ConnectionSecurity, connection_security
from kafkapy.config import BrokerConfig
from kafkapy.config.listener_security import SASL_PROTOCOLS, SaslSettings
from kafkapy.nodes.node_thread import NodeSecurity
from kafkapy.security.jaas import jaas_file_of, read_jaas_file
from kafkapy.security.sasl.server_factory import jaas_entries

PLAINTEXT = "PLAINTEXT"


class ListenerClientValues:
    """The values of a client's keys for connections to one listener, with the prefixes of listener and mechanism."""

    def __init__(self, config: BrokerConfig, listener_name: str, mechanism: str) -> None:
        self._protocol = config.security_protocols[listener_name]
        self._settings = SaslSettings(config, listener_name)
        self._mechanism = mechanism

    def __getitem__(self, key: str) -> Any:
        """Returns the value of a key in `config/keys/client_security.py`; None if it is unset."""
        if key == "security.protocol":
            return self._protocol
        if key == "sasl.mechanism":
            return self._mechanism
        return self._settings.value(self._mechanism, key)


def node_security(config: BrokerConfig) -> NodeSecurity:
    """Returns the security of connections to brokers and to controllers. Reads files. Raises ConfigError."""
    names = config.controller_listener_names
    return NodeSecurity(
        brokers=listener_client(config, config.inter_broker_listener_name, config.sasl_mechanism_inter_broker_protocol),
        controllers=listener_client(config, names[0], config.sasl_mechanism_controller_protocol) if names else None,
    )


def listener_client(config: BrokerConfig, listener_name: str, mechanism: str) -> ConnectionSecurity | None:
    """Returns the security of connections to a listener of the cluster; None for PLAINTEXT. Raises ConfigError.

    A listener that the configuration does not have is that of a node with another role, which this one does not use.
    """
    protocol = config.security_protocols.get(listener_name, PLAINTEXT)
    if protocol == PLAINTEXT:
        return None
    entry = None
    if protocol in SASL_PROTOCOLS:
        path = jaas_file_of(os.environ)
        jaas_file = None if path is None else read_jaas_file(path)
        [entry, *_] = jaas_entries(mechanism, SaslSettings(config, listener_name), jaas_file)
    return connection_security(ListenerClientValues(config, listener_name, mechanism), entry)
