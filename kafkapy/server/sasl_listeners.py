"""Constructs the authentication of the listeners with SASL from the configuration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from kafkapy._core.reactor.reactor import Reactor
from kafkapy.config import BrokerConfig
from kafkapy.config.listener_security import SaslSettings
from kafkapy.metadata.image import MetadataCache
from kafkapy.network.handler_pool import HandlerPool
from kafkapy.security.jaas import jaas_file_of, read_jaas_file
from kafkapy.security.sasl.server_factory import make_mechanisms
from kafkapy.server.credential_store import MetadataCredentials
from kafkapy.server.listener_authentication import ListenerAuthentication
from kafkapy.types import Clock


def build_sasl_listeners(
    config: BrokerConfig,
    names: Iterable[str],
    reactor: Reactor,
    handler_pool: HandlerPool,
    clock: Clock,
    metadata: MetadataCache,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, ListenerAuthentication]:
    """Returns {listener name: its SASL mechanisms and limits} for the listeners `names`, which use SASL.

    The JAAS file is that of kafkapy.jaas.config.file, or the one that KAFKA_OPTS in `environment` names. Raises
    ConfigError for a mechanism that cannot be served.
    """
    path = config.kafkapy_jaas_config_file or jaas_file_of(environment)
    jaas_file = None if path is None else read_jaas_file(path)
    store = MetadataCredentials(metadata, config, clock)
    found = {}
    for name in names:
        settings = SaslSettings(config, name)
        makers = make_mechanisms(settings, store, jaas_file, clock.wall_ms)
        found[name] = ListenerAuthentication(settings, makers, reactor, handler_pool, clock)
    return found
