"""Metrics of share groups: their sessions at this broker, and the records that they have in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from kafkapy.metrics.topic_counters import OTHER
from kafkapy.named_tuple import NamedTuple
from kafkapy.server.services import Services

if TYPE_CHECKING:
    from kafkapy.replica.share.share_partition import SharePartition


class ShareProgress(NamedTuple):
    """The numbers of one share partition of a group.

    `in_flight` counts the offsets from the partition's start offset to its end offset, and `runs` the ranges of these
    offsets whose records have the same state. `lock_timeouts` counts the records whose locks have expired, `lag` the
    records that wait for delivery or acknowledgement, and `last_deliveries` the records that cannot be delivered once
    more.
    """

    group: str
    topic: str
    partition: int
    in_flight: int
    runs: int
    lock_timeouts: int
    lag: int
    last_deliveries: int


# The types of acknowledgements by Kafka's names, from the protocol's number 1 on.
_TYPES = ("Accept", "Release", "Reject", "Renew")
_METRICS = (
    table.SHARE_IN_FLIGHT,
    table.SHARE_IN_FLIGHT_BATCHES,
    table.SHARE_LOCK_TIMEOUTS,
    table.SHARE_LAG,
    table.SHARE_LAST_DELIVERIES,
)


def write_share_groups(page: Page, services: Services, limit: int) -> None:
    """Writes metrics of share groups; at most `limit` share partitions have their own series."""
    shares = services.loaded_shares
    if shares is None:
        page.one(table.SHARE_SESSIONS, 0)
        page.one(table.SHARE_SESSION_PARTITIONS, 0)
        page.one(table.SHARE_SESSION_EVICTIONS, 0)
        page.family(table.SHARE_ACKNOWLEDGEMENTS, [((name,), 0) for name in _TYPES])
        for metric in _METRICS:
            page.family(metric, ())
        return
    page.one(table.SHARE_SESSIONS, len(shares.sessions))
    page.one(table.SHARE_SESSION_PARTITIONS, shares.sessions.partition_count)
    page.one(table.SHARE_SESSION_EVICTIONS, shares.sessions.evictions)
    page.family(
        table.SHARE_ACKNOWLEDGEMENTS,
        [((name,), shares.acknowledged[number]) for number, name in enumerate(_TYPES, 1)],
    )
    found: list[ShareProgress] = []
    for each in shares.partitions.all():
        if each.is_active:
            found.append(progress(each, shares.settings.delivery_count_limit(each.key.group_id)))
        page.pace()
    shown, rest = found[:limit], found[limit:]
    if rest:
        sums = [sum(numbers) for numbers in zip(*(each[3:] for each in rest), strict=True)]
        shown.append(ShareProgress(OTHER, "", -1, *sums))
    for index, metric in enumerate(_METRICS):
        page.family(metric, [(each[:3], each[3:][index]) for each in shown])


def progress(share_partition: SharePartition, delivery_limit: int) -> ShareProgress:
    """Returns the numbers of a share partition of a group that delivers a record at most `delivery_limit` times.

    Any thread may call it.
    """
    from kafkapy.replica.share.in_flight import ACQUIRED, AVAILABLE  # not imported without share groups

    window = share_partition.in_flight
    runs = list(window.runs)
    topic, number = share_partition.partition.topic_partition
    waiting = share_partition.partition.log.high_watermark - window.start_offset - window.complete_count
    last_deliveries = sum(
        run.size
        for run in runs
        if (run.state is ACQUIRED and run.count >= delivery_limit)
        or (run.state is AVAILABLE and run.count >= delivery_limit - 1)
    )
    return ShareProgress(
        share_partition.key.group_id,
        topic,
        number,
        window.in_flight_count,
        len(runs),
        share_partition.lock_timeouts,
        max(0, waiting),
        last_deliveries,
    )
