"""The request log: one line for each request, while the logger `kafka.request.logger` has the level DEBUG or TRACE.

The gate, the compiled code that serves usual Produce and Fetch requests, writes no log lines. It is therefore disabled
while requests are logged.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from kafkapy.protocol.api import API_TABLE, ApiKey

if TYPE_CHECKING:
    from kafkapy._core.gate.data_gate import DataGate
    from kafkapy.server.request_context import RequestContext

logger = logging.getLogger("kafka.request.logger")
# The level of Apache Kafka's log4j2.yaml, so that INFO of the root logger does not switch the log on.
logger.setLevel(logging.WARNING)
_SHUT_REASON = "the request log"


def is_enabled() -> bool:
    """Returns whether requests are logged."""
    return logger.isEnabledFor(logging.DEBUG)


def follow_level(gate: DataGate) -> None:
    """Disables the compiled request path (the gate), which writes no log lines, if requests are logged.

    Enables it if requests are not logged. Called after a change of the logger's level.
    """
    if is_enabled():
        gate.shut(_SHUT_REASON)
    elif _SHUT_REASON in gate.shut_by:
        gate.open(_SHUT_REASON)


def log_request(context: RequestContext) -> None:
    """Writes the line of a request, with the field names of Apache Kafka's request log.

    The line has no fields of the request itself, which may contain records and secrets.
    """
    header = context.header
    fields: dict[str, Any] = {
        "requestHeader": {
            "clientId": header.client_id,
            "requestApiVersion": header.request_api_version,
            "correlationId": header.correlation_id,
            "requestApiKeyName": API_TABLE[ApiKey(context.api_key)].name,
        },
        "connection": f"{context.connection.peer_host}:{context.connection.peer_port}",
        "listener": context.listener.name,
        "securityProtocol": context.listener.security_protocol,
        "principal": str(context.principal),
        "softwareName": context.session.client_software_name,
        "softwareVersion": context.session.client_software_version,
    }
    logger.debug("Received request:%s", json.dumps(fields, separators=(",", ":")))
