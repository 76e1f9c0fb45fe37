"""The fetches of clients and the delays by quotas, as the broker knows them.

The functions read objects of the reactor's thread, which may change them at the same time: each number is correct at
one moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from math import isfinite
from typing import Any

from kafkapy.server.fetch_session_cache import FetchSession
from kafkapy.server.large_fetches import FetchClient
from kafkapy.server.quotas.client_quotas import ClientQuotas
from kafkapy.server.quotas.precedence import FETCH, MUTATION, PRODUCE, REQUEST, Bucket
from kafkapy.server.services import Services
from kafkapy.types import TopicPartition

Pace = Callable[[], None]
# The number of connected clients that an entry of a quota names.
MOST_CLIENTS = 50


def fetch_places(
    services: Services, client_id: str | None, partition: TopicPartition | None, start: int, limit: int, pace: Pace
) -> dict[str, Any]:
    """Returns the JSON object of the page `fetches`: the partitions that consumers read in fetch sessions.

    The page leaves out the first `start` entries, and has at most `limit` entries. If `client_id` or `partition` is not
    None, it has only entries of clients with this id, or of this partition. The object's `next` is the value of `start`
    for the following page, None on the last page. `pace` is called often, so that other threads can run Python.
    """
    found = list(islice(_places(services, client_id, partition, pace), start, start + limit + 1))
    following = start + limit if len(found) > limit else None
    return {"fetches": found[:limit], "next": following, "sessions": len(services.fetch_sessions.cache)}


def _places(
    services: Services, client_id: str | None, partition: TopicPartition | None, pace: Pace
) -> Iterator[dict[str, Any]]:
    now_ms = services.clock.monotonic_ms()
    session: FetchSession
    for session in services.fetch_sessions.cache.listed():
        client = session.client
        if client is None or session.is_privileged or (client_id is not None and client.client_id != client_id):
            continue
        for each in session.partitions.listed():
            pace()
            if partition is None or each.topic_partition == partition:
                yield _client(client) | {
                    "topic": each.topic,
                    "partition": each.partition,
                    "fetch_offset": each.fetch_offset,
                    "partition_max_bytes": each.max_bytes,
                    "age_ms": max(0, now_ms - session.last_used_ms),
                }


def _client(client: FetchClient) -> dict[str, Any]:
    return {"client_id": client.client_id, "user": client.user, "host": client.host}


def large_fetches(
    services: Services, client_id: str | None, partition: TopicPartition | None, start: int, limit: int
) -> dict[str, Any]:
    """Returns the JSON object of the page `large-fetches`: fetches that met a batch larger than they permitted.

    The newest fetch is the first entry. The arguments have the meaning that they have in `fetch_places`.
    """
    now_ms = services.clock.monotonic_ms()
    wanted = [
        each
        for each in reversed(services.large_fetches.listed())
        if (client_id is None or each.client.client_id == client_id) and partition in (None, each.partition)
    ]
    found = [
        _client(each.client)
        | {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "fetch_offset": each.offset,
            "batch_bytes": each.batch_bytes,
            "partition_max_bytes": each.partition_max_bytes,
            "max_bytes": each.max_bytes,
            "age_ms": max(0, now_ms - each.monotonic_ms),
        }
        for each in wanted[start : start + limit]
    ]
    return {"large_fetches": found, "next": start + limit if start + limit < len(wanted) else None}


def quota_page(services: Services, client_id: str | None, start: int, limit: int, pace: Pace) -> dict[str, Any]:
    """Returns the JSON object of the page `quotas`: an entry for each quota and each group of clients that shares it.

    If `client_id` is not None, the page has only entries that apply to connected clients with this id. The other
    arguments have the meaning that they have in `fetch_places`.
    """
    found = list(islice(_spending(services, client_id, pace), start, start + limit + 1))
    return {"quotas": found[:limit], "next": start + limit if len(found) > limit else None}


def _spending(services: Services, client_id: str | None, pace: Pace) -> Iterator[dict[str, Any]]:
    now_ms = services.reactor.monotonic_ms
    quotas, mutations = services.quotas, services.mutation_quotas
    clients = {} if quotas is None else _clients(quotas, pace)
    for key in (PRODUCE, FETCH, REQUEST):
        for each in () if quotas is None else quotas.spending(key, now_ms):
            pace()
            sharing = clients.get((key, each.bucket), [])
            if client_id is not None and not any(name == client_id for _, name in sharing):
                continue
            yield _entry(key, each.bucket, each.rule, each.bound, each.rate) | {
                "throttle_ms": each.wait_ms,
                "average_throttle_ms": round(each.throttle_ms, 3),
                "clients": [{"user": user, "client_id": name} for user, name in sharing[:MOST_CLIENTS]],
            }
    for spent in [] if mutations is None else mutations.spending(now_ms):
        if client_id is None or spent.bucket.client_id == client_id:
            yield _entry(MUTATION, spent.bucket, spent.rule, spent.bound, spent.rate) | {
                "average_throttle_ms": round(spent.throttle_ms, 3),
                "clients": [],
            }


def _clients(quotas: ClientQuotas, pace: Pace) -> dict[tuple[str, Bucket], list[tuple[str, str]]]:
    """Returns the connected clients of each bucket of each quota, as (user, client id) pairs.

    A key of the result is a pair of a quota's name, such as "producer_byte_rate", and a bucket: the group of clients
    that share one limit of this quota.
    """
    found: dict[tuple[str, Bucket], list[tuple[str, str]]] = defaultdict(list)
    for key, bucket, principal, client_id in quotas.clients():
        pace()
        found[key, bucket].append((str(principal), client_id))
    return found


def _entry(key: str, bucket: Bucket, rule: str, bound: float, rate: float) -> dict[str, Any]:
    return {
        "quota": key,
        "user": bucket.user,
        "client_id": bucket.client_id,
        "tags": dict(bucket.others),
        "rule": rule,
        "limit": bound if isfinite(bound) else None,
        "rate": round(rate, 3),
    }
