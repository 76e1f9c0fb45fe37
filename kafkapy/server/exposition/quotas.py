"""The quotas of clients and of replication: what is spent, and who is throttled."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from kafkapy.metrics import table
from kafkapy.metrics.metric import Metric
from kafkapy.metrics.page import Page
from kafkapy.server.services import Services

if TYPE_CHECKING:
    from kafkapy.server.quotas.client_quotas import Spending
    from kafkapy.server.quotas.mutation_quota import MutationQuotas
    from kafkapy.server.quotas.precedence import Bucket

_FAMILIES: dict[str, tuple[Metric, Metric]] = {
    "producer_byte_rate": (table.PRODUCE_BYTE_RATE, table.PRODUCE_THROTTLE_TIME),
    "consumer_byte_rate": (table.FETCH_BYTE_RATE, table.FETCH_THROTTLE_TIME),
    "request_percentage": (table.REQUEST_TIME, table.REQUEST_THROTTLE_TIME),
}


def write_quotas(page: Page, services: Services, limit: int) -> None:
    """Writes the metrics of quotas, with series for at most `limit` buckets of each kind of client quota.

    A bucket is a group of clients that share a limit. There are no buckets before the first quota is set.
    """
    quotas = services.quotas
    now_ms = services.reactor.monotonic_ms
    for key, (rate, throttle_time) in _FAMILIES.items():
        buckets: list[Spending] = [] if quotas is None else list(islice(quotas.spending(key, now_ms), limit))
        page.family(rate, ((_labels(each.bucket), each.rate) for each in buckets))
        page.family(throttle_time, ((_labels(each.bucket), each.throttle_ms) for each in buckets))
        page.family(table.QUOTA_LIMITS[key], (((*_labels(each.bucket), each.rule), each.bound) for each in buckets))
        page.one(table.QUEUE_SIZES[key], 0 if quotas is None else quotas.waiting(key, now_ms))
    page.one(table.EXEMPT_TIME, 0.0 if quotas is None else quotas.exempt_time(now_ms))
    _write_mutations(page, services.mutation_quotas, now_ms, limit)
    throttles = services.replica_manager.hosted.throttles
    page.one(table.LEADER_REPLICATION, throttles.leader.rate(now_ms))
    page.one(table.FOLLOWER_REPLICATION, throttles.follower.rate(now_ms))
    page.one(table.ALTER_LOG_DIRS_REPLICATION, services.alter_log_dirs.copied.rate(now_ms))


def _write_mutations(page: Page, mutations: MutationQuotas | None, now_ms: int, limit: int) -> None:
    spending = [] if mutations is None else mutations.spending(now_ms)[:limit]
    page.family(table.MUTATION_TOKENS, ((_labels(each.bucket), each.tokens) for each in spending))
    page.family(table.MUTATION_RATE, ((_labels(each.bucket), each.rate) for each in spending))
    page.family(table.MUTATION_THROTTLE_TIME, ((_labels(each.bucket), each.throttle_ms) for each in spending))
    page.family(table.MUTATION_LIMIT, (((*_labels(each.bucket), each.rule), each.bound) for each in spending))
    page.one(table.MUTATION_QUEUE_SIZE, 0 if mutations is None else mutations.waiting(now_ms))


def _labels(bucket: Bucket) -> tuple[str, str]:
    return bucket.user, bucket.client_id
