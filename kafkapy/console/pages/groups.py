"""The list of groups of every protocol, and the page of one group with the reason of its lag."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafkapy.client.admin import GroupDescription, OffsetAndMetadata
from kafkapy.console.broker_verdicts import verdicts_of_brokers
from kafkapy.console.cluster_view import SLOW_S
from kafkapy.console.group_lag import (
    LagHistory,
    PartitionLag,
    Sample,
    first_unread_times,
    partition_lags,
    total,
    verdicts,
)
from kafkapy.console.history import group_series
from kafkapy.console.old_consumers import OldGroups, old_groups
from kafkapy.console.pages.history import curves_of
from kafkapy.console.problem import Problem
from kafkapy.console.share_state import Deliveries, Place, deliveries_of
from kafkapy.console.visit import Page, Visit, part_of
from kafkapy.errors import ApiError, Error
from kafkapy.types import TopicPartition

_MISSING = (Error.GROUP_ID_NOT_FOUND, Error.INVALID_GROUP_ID)
IN_ZOOKEEPER = "ZooKeeper"
_SHARE, _STREAMS = "Share", "Streams"
_history = LagHistory()


def show_all(visit: Visit) -> Page:
    """Returns the page with the list of groups. Lags are read only for the groups that the page shows."""
    wanted = visit.text("q")
    kind = visit.text("type")
    every = visit.cluster.groups()
    groups = [
        each
        for each in every
        if wanted.lower() in each.group_id.lower() and (not kind or (each.type or "Classic") == kind)
    ]
    part = part_of(groups, visit)
    kinds = sorted({each.type or "Classic" for each in every})
    lags = _lags(visit, [each.group_id for each in part.rows if each.type not in (_SHARE,)])
    return Page(
        "groups",
        {
            "tab": "groups",
            "part": part,
            "lags": lags,
            "wanted": wanted,
            "kind": kind,
            "kinds": [*kinds, *([IN_ZOOKEEPER] if visit.cluster.zookeeper else [])],
            "old": old_groups(visit.cluster, wanted) if kind in ("", IN_ZOOKEEPER) else OldGroups(),
        },
    )


def _lags(visit: Visit, groups: list[str]) -> dict[str, int | None]:
    """Returns the lag of each group. The lag is None if the group has committed no offset, or if no end of a log could
    be read.

    This takes one request for offsets for each group, and two requests to each broker for the ends.
    """
    offsets = visit.cluster.admin.list_group_offsets(groups).values
    ends = visit.cluster.ends({key for each in offsets.values() for key in each})
    found: dict[str, int | None] = {}
    for group, committed in offsets.items():
        known = [
            max((ends[key].end or 0) - each.offset, 0) for key, each in committed.items() if ends[key].end is not None
        ]
        found[group] = sum(known) if known else None
    return found


def show(visit: Visit) -> Page:
    """Returns the page of one group. The group's id is in the query of the URL, because it may have any characters."""
    group = visit.text("id")
    if not group:
        raise Problem(400, "The URL names no group: /group?id=NAME.")
    listing = next((each for each in visit.cluster.groups() if each.group_id == group), None)
    if listing is None:
        raise Problem(404, f"There is no group {group!r}. It may have been deleted, or it has expired.")
    values: dict[str, Any] = {"tab": "groups", "group": group, "listing": listing}
    if listing.type == _SHARE:
        return _share_group(visit, group, values)
    if listing.type == _STREAMS:
        return _streams_group(visit, group, values)
    described = _describe(visit, group)
    values["described"] = described
    values["members"] = described.members
    values["curves"] = curves_of(visit, {group_series(group): ("Lag in the last hour", "records")})
    return Page("group", values | _lag_values(visit, group, described, with_times=visit.text("times") != "0"))


def _describe(visit: Visit, group: str) -> GroupDescription:
    """Returns the description of a group with the consumer protocol, or else of a classic group of any protocol type.

    Raises Problem if the group does not exist, and ApiError if it cannot be described.
    """
    found = visit.cluster.admin.describe_groups([group])
    if group in found.values:
        return found.values[group]
    found = visit.cluster.admin.describe_classic_groups([group])
    if group in found.errors and found.errors[group].error in _MISSING:
        raise Problem(404, f"There is no group {group!r} any more.")
    return found[group]


def _lag_values(visit: Visit, group: str, described: GroupDescription | None, *, with_times: bool) -> dict[str, Any]:
    """Returns the values for a page's template that concern the lag of a group: the lag of each partition, the total,
    and the verdicts, which are sentences that explain the lag.

    `described` is None if the group's members are unknown. If `with_times` is True, the times of the first unread
    records are read, too. Adds a sample of the group's offsets to a history, from which later calls compute the group's
    progress.
    """
    offsets = _offsets(visit, group)
    lags = partition_lags(visit.cluster, described, offsets)
    sample = Sample(
        time.monotonic(),
        {key: each.offset for key, each in offsets.items()},
        {each.partition: each.ends.end for each in lags if each.ends.end is not None},
        (described.epoch, *sorted(each.member_id for each in described.members)) if described is not None else (),
    )
    samples = _history.add(f"{visit.cluster.name}/{group}", sample)
    of_brokers, unknown = verdicts_of_brokers(visit.cluster, described, lags)
    times = first_unread_times(visit.cluster, lags) if with_times else {}
    now_ms = int(time.time() * 1000)
    shown = [_with_age(each, times, now_ms) for each in lags]
    return {
        "lags": shown,
        "lag": total(shown),
        "behind_ms": max((each.behind_ms for each in shown if each.behind_ms is not None), default=None),
        "verdicts": verdicts(described, shown, samples, of_brokers),
        "unknown": unknown,
        "most": max((each.lag or 0 for each in shown), default=0),
    }


def _offsets(visit: Visit, group: str) -> Mapping[TopicPartition, OffsetAndMetadata]:
    return visit.cluster.admin.list_group_offsets([group])[group]


def _with_age(lag: PartitionLag, times: Mapping[TopicPartition, int], now_ms: int) -> PartitionLag:
    if lag.lag == 0:
        return lag._replace(behind_ms=0)
    if lag.partition in times:
        return lag._replace(behind_ms=max(now_ms - times[lag.partition], 0))
    return lag


def _share_group(visit: Visit, group: str, values: dict[str, Any]) -> Page:
    admin = visit.cluster.admin
    described = admin.describe_share_groups([group])[group]
    refusal = ""
    offsets: Mapping[TopicPartition, Any] = {}
    try:
        offsets = admin.list_share_group_offsets([group])[group]
    except ApiError as error:
        refusal = error.message
    keys = sorted({*offsets, *(each for member in described.members for each in member.partitions)})
    ends = visit.cluster.ends(keys)
    deliveries, unknown = _deliveries(visit, group)
    ids = {name: visit.cluster.topic(name).topic_id for name in {key.topic for key in keys}} if deliveries else {}
    rows = [(key, offsets.get(key), ends[key], deliveries.get((ids.get(key.topic), key.partition))) for key in keys]
    values |= {"described": described, "rows": rows, "refusal": refusal, "unknown": unknown}
    return Page("share_group", values)


def _deliveries(visit: Visit, group: str) -> tuple[dict[Place, Deliveries], str]:
    """Returns (deliveries of a share group by partition, ""), or ({}, reason why they cannot be read)."""
    try:
        found = visit.cluster.cached(f"deliveries of {group}", SLOW_S, lambda: deliveries_of(visit.cluster, group))
    except ApiError as error:
        return {}, error.message
    except Problem as problem:
        return {}, problem.text
    return found, ""


def _streams_group(visit: Visit, group: str, values: dict[str, Any]) -> Page:
    described = visit.cluster.admin.describe_streams_groups([group])[group]
    lag_values = _lag_values(visit, group, None, with_times=True)
    return Page("streams_group", {**values, "described": described, **lag_values})
