"""Charges partitions that are created or deleted to the quota of the client (`controller_mutation_rate`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.controller.topics import Charge, uncharged
from kafkapy.types import Clock

if TYPE_CHECKING:
    from kafkapy.server.quotas.mutation_quota import MutationQuota
    from kafkapy.server.request_context import RequestContext


def mutation_quota(context: RequestContext, *, is_strict: bool) -> MutationQuota | None:
    """Returns the quota for one request of the client, or None if nothing limits the client. `is_strict` says whether
    a change is refused if the quota is exceeded."""
    quotas = context.services.mutation_quotas
    if quotas is None:
        return None
    monotonic_ms = context.services.clock.monotonic_ms()
    return quotas.quota(context.principal, context.client_id or "", monotonic_ms, is_strict=is_strict)


def charge_to(quota: MutationQuota | None, clock: Clock) -> Charge:
    """Returns the function that the controller calls, with a number of partitions, before it creates or deletes them.

    The function charges them to `quota`; it does nothing if `quota` is None.
    """
    if quota is None:
        return uncharged
    return lambda partitions: quota.charge(partitions, clock.monotonic_ms())
