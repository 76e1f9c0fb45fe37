"""The security of this node's connections to other nodes: the keys of the listeners that it connects to.

Connections to brokers use `inter.broker.listener.name` and `sasl.mechanism.inter.broker.protocol`. Connections to
controllers use the first of `controller.listener.names`, and `sasl.mechanism.controller.protocol`. User name and
password are those of the listener's own JAAS configuration, as in Apache Kafka.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from ssl import SSLContext
from typing import Any

from kafkapy._core.tls.tls_context import TlsContext
from kafkapy.client.connection_security import ConnectionSecurity, connection_security
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import PROTOCOLS_WITH_TLS
from kafkapy.config.listener_security import SASL_PROTOCOLS, SaslSettings
from kafkapy.config.listener_ssl import listener_ssl_settings
from kafkapy.config.ssl_settings import SslSettings
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.nodes.node_thread import NodeSecurity
from kafkapy.security.jaas import JaasEntry, jaas_file_of, read_jaas_file
from kafkapy.security.sasl.server_factory import GSSAPI, KERBEROS_MODULE, OAUTHBEARER, jaas_entries
from kafkapy.security.tls.native_context import make_tls_context
from kafkapy.security.tls.python_context import client_context
from kafkapy.security.tls.stores import file_states
from kafkapy.security.tls.tls_material import TlsMaterial, load_material

logger = logging.getLogger("kafka.server.KafkaServer")

PLAINTEXT = "PLAINTEXT"
# The mechanisms whose credentials are not a user name and a password, and their login modules.
_MODULES = {
    GSSAPI: KERBEROS_MODULE,
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}


class ListenerClientValues:
    """The values of the security keys of a client for connections from this node to one listener.

    A key with the listener's prefix (listener.name.NAME.), or with this prefix and that of the SASL mechanism, takes
    precedence over the key without a prefix.
    """

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


class ListenerClientTls:
    """The TLS contexts for this node's connections to one listener of the cluster. Any thread may use the object.

    The contexts use the key store and the trust store of this node's own listener with the same name. The stores are
    read again for the next connection after their keys or files have changed.
    """

    def __init__(self, config: BrokerConfig, listener_name: str) -> None:
        """Reads the key store and the trust store. Raises ConfigError if they cannot be used."""
        self._config = config
        self._name = listener_name
        self._protocol = config.security_protocols[listener_name]
        self._material = self._load(self._settings())
        self._contexts = self._make(self._material)

    @property
    def verifies_name(self) -> bool:
        """True if a certificate has to be for the host that is connected to."""
        return bool(self._material.settings.endpoint_identification_algorithm)

    def context(self) -> SSLContext:
        """Returns the TLS context for the connections of the thread that sends requests to other nodes."""
        self._refresh()
        return self._contexts[0]

    def reactor_context(self) -> TlsContext:
        """Returns the TLS context for connections of the reactor's thread to the listener."""
        self._refresh()
        return self._contexts[1]

    def _settings(self) -> SslSettings:
        return listener_ssl_settings(self._config, self._name, self._protocol)

    @staticmethod
    def _load(settings: SslSettings) -> TlsMaterial:
        return load_material(settings, is_server=False)

    @staticmethod
    def _make(material: TlsMaterial) -> tuple[SSLContext, TlsContext]:
        return client_context(material), make_tls_context(material, is_server=False)

    def _refresh(self) -> None:
        try:
            settings = self._settings()
            if settings == self._material.settings and file_states(settings) == self._material.files:
                return
            material = self._load(settings)
            self._contexts = self._make(material)
            self._material = material
        except ConfigError as error:
            logger.error("The stores for connections to %s are not changed: %s", self._name, error)


class ListenerClient(NamedTuple):
    """The security of this node's connections to one listener of the cluster.

    `security` is None if the listener is PLAINTEXT; `tls` is None if the connections do not use TLS.
    """

    security: ConnectionSecurity | None
    tls: ListenerClientTls | None


class NodeClients(NamedTuple):
    """The security of this node's connections to other brokers and to controllers.

    Each of the two is None if the connections use PLAINTEXT, or if this node makes no such connections.
    """

    brokers: ListenerClient | None = None
    controllers: ListenerClient | None = None

    @property
    def of_channels(self) -> NodeSecurity:
        """The security of the connections of the thread that sends requests to other nodes.

        The result has `ListenerClient.security` for brokers and for controllers, or None where the connections use
        PLAINTEXT. `ListenerClient.tls` is not needed, because `security` gets the TLS contexts from it.
        """
        return NodeSecurity(
            brokers=None if self.brokers is None else self.brokers.security,
            controllers=None if self.controllers is None else self.controllers.security,
        )


def node_clients(config: BrokerConfig) -> NodeClients:
    """Returns the security of connections to brokers and to controllers. Reads key stores and other files. Raises
    ConfigError if they cannot be used.
    """
    names = config.controller_listener_names
    return NodeClients(
        brokers=listener_client(config, config.inter_broker_listener_name, config.sasl_mechanism_inter_broker_protocol),
        controllers=listener_client(config, names[0], config.sasl_mechanism_controller_protocol) if names else None,
    )


def listener_client(config: BrokerConfig, listener_name: str, mechanism: str) -> ListenerClient | None:
    """Returns the TLS and SASL settings with which this node connects to a listener of the cluster.

    `mechanism` is the SASL mechanism. Returns None if the listener is PLAINTEXT, or if the configuration does not have
    it, because this node then does not connect to it. Raises ConfigError.
    """
    protocol = config.security_protocols.get(listener_name, PLAINTEXT)
    if protocol == PLAINTEXT:
        return None
    entry = None
    if protocol in SASL_PROTOCOLS:
        path = config.kafkapy_jaas_config_file or jaas_file_of(os.environ)
        jaas_file = None if path is None else read_jaas_file(path)
        entry = _entry_for(mechanism, jaas_entries(mechanism, SaslSettings(config, listener_name), jaas_file))
    tls = ListenerClientTls(config, listener_name) if protocol in PROTOCOLS_WITH_TLS else None
    values = ListenerClientValues(config, listener_name, mechanism)
    return ListenerClient(connection_security(values, entry, None if tls is None else tls.context), tls)


def _entry_for(mechanism: str, entries: Sequence[JaasEntry]) -> JaasEntry:
    """Returns the login module with the credentials for a SASL mechanism, of the modules of a login context.

    As in Kafka, the modules of PLAIN and SCRAM may have the user name for each other. Returns the first module if none
    is for the mechanism, so that the error names what is missing.
    """
    module = _MODULES.get(mechanism)
    suitable = [entry for entry in entries if (entry.module == module if module else "username" in entry.options)]
    return (suitable or entries)[0]
