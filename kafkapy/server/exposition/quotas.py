"""The quotas of clients: what they spend, and who is throttled."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from kafkapy.metrics import table
from kafkapy.metrics.metric import Metric
from kafkapy.metrics.page import Page
from kafkapy.server.services import Services

if TYPE_CHECKING:
    from kafkapy.server.quotas.client_quotas import Spending

_FAMILIES: dict[str, tuple[Metric, Metric]] = {
    "producer_byte_rate": (table.PRODUCE_BYTE_RATE, table.PRODUCE_THROTTLE_TIME),
    "consumer_byte_rate": (table.FETCH_BYTE_RATE, table.FETCH_THROTTLE_TIME),
    "request_percentage": (table.REQUEST_TIME, table.REQUEST_THROTTLE_TIME),
}


def write_quotas(page: Page, services: Services, limit: int) -> None:
    """Writes at most `limit` buckets of each kind of quota; there are none before the first quota is set."""
    quotas, mutations = services.quotas, services.mutation_quotas
    now_ms = services.reactor.monotonic_ms
    for key, (rate, throttle_time) in _FAMILIES.items():
        buckets: list[Spending] = [] if quotas is None else list(islice(quotas.spending(key, now_ms), limit))
        page.family(rate, (((each.bucket.user, each.bucket.client_id), each.rate) for each in buckets))
        page.family(throttle_time, (((each.bucket.user, each.bucket.client_id), each.throttle_ms) for each in buckets))
        page.family(
            table.QUOTA_LIMITS[key], (((each.bucket.user, each.bucket.client_id), each.bound) for each in buckets)
        )
    tokens = [] if mutations is None else mutations.buckets()[:limit]
    page.family(table.MUTATION_TOKENS, (((bucket.user, bucket.client_id), count) for bucket, count in tokens))
