"""Construction of the broker's audit, for the key kafkapy.audit.topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkapy.client.reliable.audit import AUDIT_TOPIC
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener, own_address
from kafkapy.config.properties import read_properties
from kafkapy.errors import ConfigError
from kafkapy.server.audit.audited_logs import AuditedLogs
from kafkapy.server.audit.broker_audit import BrokerAudit
from kafkapy.server.audit.count_writer import CountWriter
from kafkapy.types import Clock


def build_audit(
    config: BrokerConfig,
    listeners: Sequence[Listener],
    on_reactor: Callable[[Callable[[], Any]], Any],
    clock: Clock,
) -> BrokerAudit:
    """Constructs the audit of a broker whose bound listeners for clients are `listeners`; starts nothing.

    Raises ConfigError if no listener can be connected to, or if the client's configuration cannot be read.
    """
    path = config.kafkapy_audit_client_config
    address = own_address(listeners, is_secured=bool(path))
    if address is None:
        raise ConfigError(
            "kafkapy.audit.topics needs a listener of the security protocol PLAINTEXT, or the configuration of a "
            "client: set kafkapy.audit.client.config=FILE"
        )
    properties = {"bootstrap.servers": address, **(read_properties(path) if path else {})}
    logs = AuditedLogs(config.kafkapy_audit_topics, (AUDIT_TOPIC,), clock)
    return BrokerAudit(logs, CountWriter(properties, config.node_id), on_reactor, clock)
