"""The page of one group of old consumers, whose offsets are stored in ZooKeeper."""

from __future__ import annotations

import time

from kafkapy.console.group_lag import LagHistory, PartitionLag, Sample, Verdict, verdicts
from kafkapy.console.old_consumers import old_group
from kafkapy.console.problem import Problem
from kafkapy.console.visit import Page, Visit

_history = LagHistory()


def show(visit: Visit) -> Page:
    """Returns the page of a group of old consumers: its members, and the offset, owner and lag of each partition.

    The page also has sentences that explain the lag, for example that the group has no members.
    """
    group = visit.text("id")
    if not group:
        raise Problem(400, "The URL names no group: /old-group?id=NAME.")
    found, members = old_group(visit.cluster, group)
    partitions = found.partitions or ()
    lags = [PartitionLag(each.partition, each.offset, each.ends, None, each.owner) for each in partitions]
    sample = Sample(
        time.monotonic(),
        {each.partition: each.offset for each in partitions if each.offset is not None},
        {each.partition: each.ends.end for each in partitions if each.ends.end is not None},
        tuple(each.member_id for each in members),
    )
    samples = _history.add(f"{visit.cluster.name}/{group}", sample)
    reasons = verdicts(None, lags, samples)
    if not members and found.lag is not None:
        text = f"No member reads; {found.lag} records wait." if found.lag else "No member reads, and nothing waits."
        reasons = [Verdict("bad" if found.lag else "good", text)]
    values = {"found": found, "members": members, "verdicts": reasons}
    return Page("old_group", {"tab": "groups", **values, "most": max((each.lag or 0 for each in lags), default=0)})
