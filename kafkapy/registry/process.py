"""Constructs the parts of a registry and serves it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from kafkapy.http.api_server import serve_api
from kafkapy.http.settings import HttpSettings
from kafkapy.registry.application import RegistryApi, refuse
from kafkapy.registry.election import Election
from kafkapy.registry.forwarding import Forwarder
from kafkapy.registry.model import Level
from kafkapy.registry.service import RegistryService
from kafkapy.registry.topic import SchemaTopic
from kafkapy.security.tls.python_context import client_context
from kafkapy.security.tls.tls_material import load_material


def serve_registry(
    properties: Mapping[str, str],
    settings: HttpSettings,
    *,
    topic: str,
    replication_factor: int,
    group: str,
    timeout_s: float,
    init_timeout_s: float,
    level: Level,
    is_eligible: bool,
    host: str,
) -> None:
    """Serves a registry until SIGINT or SIGTERM.

    `properties` is the configuration of the clients; `host` is the name by which other instances reach this one.
    `topic` stores the schemas, and `group` is the consumer group that elects the writer. This instance can be elected
    only if `is_eligible`. `timeout_s` limits each operation, and `init_timeout_s` the first reading of the
    topic. `level` is the default compatibility level. Raises KafkapyError for a cluster or topic that cannot be used.
    """
    schemas = SchemaTopic(properties, topic, replication_factor, group, timeout_s)
    election = Election(properties, group, schemas, is_eligible=is_eligible)
    tls = None if settings.ssl is None else client_context(load_material(settings.ssl, is_server=False))
    service = RegistryService(schemas.store, schemas.write, level)
    api = RegistryApi(service, election, Forwarder(tls, timeout_s), timeout_s)

    def on_ready(url: str) -> None:
        election.start(f"{settings.scheme}://{host}:{urlsplit(url).port}")
        print(f"kafkapy registry ready on {url}", flush=True)

    try:
        schemas.start(init_timeout_s)
        serve_api(api.application(), settings, on_ready, refuse)
    finally:
        api.close()
        election.close()
        schemas.close()
