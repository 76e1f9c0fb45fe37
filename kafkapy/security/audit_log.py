"""The audit log of authorization: one line of `kafka.authorizer.logger` for each decision."""

from __future__ import annotations

import logging

from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.security.acl import Operation, PatternType, ResourceType
from kafkapy.security.authorizer import Action, Requester
from kafkapy.types import TRACE

logging.addLevelName(TRACE, "TRACE")

logger = logging.getLogger("kafka.authorizer.logger")


def log_decision(requester: Requester, host: str, action: Action, rule: object, *, is_allowed: bool) -> None:
    """Logs a decision: a denial at INFO, a permission at DEBUG.

    A denial is logged at TRACE if `action.log_if_denied` is False, a permission if `action.log_if_allowed` is False.
    `host` is the client's address as ACLs contain it. The text of `rule` is the reason of the decision.
    """
    if is_allowed:
        level = logging.DEBUG if action.log_if_allowed else TRACE
    else:
        level = logging.INFO if action.log_if_denied else TRACE
    if not logger.isEnabledFor(level):
        return
    logger.log(
        level,
        "Principal = %s is %s operation = %s from host = %s on resource = %s:%s:%s for request = %s with "
        "resourceRefCount = %d based on rule %s",
        requester.principal,
        "Allowed" if is_allowed else "Denied",
        Operation(action.operation).name,
        host,
        resource_type_name(action.resource_type),
        PatternType.LITERAL.name,
        action.resource_name,
        API_TABLE[ApiKey(requester.api_key)].name,
        action.resource_count,
        rule,
    )


def resource_type_name(resource_type: int) -> str:
    """Returns the name of a resource type as Kafka's audit log shows it: TRANSACTIONAL_ID is `TransactionalId`."""
    return "".join(word.capitalize() for word in ResourceType(resource_type).name.split("_"))
