"""ACLs, users with SCRAM credentials, quotas, and subscriptions of client metrics."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from kafkapy.client.admin import (
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    ConfigResource,
    ResourceType,
)
from kafkapy.console.visit import Page, Visit
from kafkapy.errors import ApiError

MOST_ROWS = 1000


def show(visit: Visit) -> Page:
    """Returns the page of ACLs, SCRAM users, quotas, and subscriptions of client metrics.

    If a list cannot be read, because the user lacks a permission or the cluster does not support the request, the page
    shows the reason instead of the list.
    """
    admin = visit.cluster.admin
    wanted = visit.text("q").lower()
    acls, acl_refusal = _read(lambda: sorted(admin.describe_acls(AclFilter()), key=str))
    users, user_refusal = _read(lambda: sorted(admin.describe_user_scram_credentials().values.items()))
    quotas, quota_refusal = _read(lambda: sorted(admin.describe_client_quotas().items(), key=str))
    metrics, metrics_refusal = _read(lambda: _client_metrics(visit))
    shown = [each for each in acls if wanted in f"{each.principal} {each.resource_name} {each.host}".lower()]
    return Page(
        "security",
        {
            "tab": "security",
            "wanted": wanted,
            "acls": shown[:MOST_ROWS],
            "acl_count": len(shown),
            "acl_refusal": acl_refusal,
            "users": users[:MOST_ROWS],
            "user_refusal": user_refusal,
            "quotas": quotas[:MOST_ROWS],
            "quota_refusal": quota_refusal,
            "metrics": metrics,
            "metrics_refusal": metrics_refusal,
            "operation_name": lambda entry: _name(AclOperation, entry.operation),
            "permission_name": lambda entry: _name(AclPermission, entry.permission_type),
            "resource_name": lambda entry: _name(AclResourceType, entry.resource_type),
            "pattern_name": lambda entry: _name(AclPatternType, entry.pattern_type),
        },
    )


def _name(kind: type[IntEnum], number: int) -> str:
    """Returns the name of a number of the protocol as the tools write it, such as "allow" or "describe configs"."""
    try:
        return kind(number).name.lower().replace("_", " ")
    except ValueError:
        return f"unknown ({number})"


def _read(read: Callable[[], Any]) -> tuple[Any, str]:
    try:
        return read(), ""
    except ApiError as error:
        return [], error.message


def _client_metrics(visit: Visit) -> list[tuple[str, dict[str, str | None]]]:
    admin = visit.cluster.admin
    resources: list[ConfigResource] = admin.list_config_resources((ResourceType.CLIENT_METRICS,))
    found = admin.describe_configs(resources).values if resources else {}
    return [(each.name, {key: entry.value for key, entry in found.get(each, {}).items()}) for each in resources]
