"""Metrics of groups, with their lag, and of transactions."""

from __future__ import annotations

from collections import Counter

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.member_group import MemberGroup
from kafkapy.coordinator.transaction.transaction_state import RESTING_STATES, TransactionState
from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from kafkapy.metrics.topic_counters import OTHER
from kafkapy.named_tuple import NamedTuple
from kafkapy.server.services import Services
from kafkapy.types import TopicPartition

STATE_METRICS = {
    GroupState.EMPTY: table.GROUPS_EMPTY,
    GroupState.PREPARING_REBALANCE: table.GROUPS_PREPARING,
    GroupState.COMPLETING_REBALANCE: table.GROUPS_COMPLETING,
    GroupState.STABLE: table.GROUPS_STABLE,
    GroupState.DEAD: table.GROUPS_DEAD,
}


class Progress(NamedTuple):
    """A group's committed offset in one partition, and the number of records from there to the high watermark (`lag`)
    and to the last stable offset (`stable_lag`).
    """

    group: str
    topic: str
    partition: int
    offset: int
    lag: int
    stable_lag: int


def write_groups(page: Page, services: Services, limit: int) -> None:
    """Writes metrics of groups; at most `limit` groups and `limit` committed offsets have their own series."""
    by_state: Counter[tuple[str, str]] = Counter()
    members: list[tuple[str, int]] = []
    for group in services.group_coordinator.all_groups():
        if isinstance(group, ClassicGroup):
            by_state["classic", group.state.value] += 1
            members.append((group.group_id, len(group.members)))
        elif isinstance(group, MemberGroup):
            by_state[group.group_type, group.state_name] += 1
            members.append((group.group_id, len(group.members)))
        page.pace()
    page.one(table.GROUPS, by_state.total())
    for state, metric in STATE_METRICS.items():
        page.one(metric, sum(count for (_, name), count in by_state.items() if name == state.value))
    page.family(table.GROUPS_BY_STATE, sorted(by_state.items()))
    rest = sum(count for _, count in members[limit:])
    shown = [((group,), count) for group, count in members[:limit]] + ([((OTHER,), rest)] if members[limit:] else [])
    page.family(table.GROUP_MEMBERS, shown)
    _write_progress(page, _progress(page, services), limit)


def _progress(page: Page, services: Services) -> list[Progress]:
    found: list[Progress] = []
    partitions = services.replica_manager.partitions
    for group_id, topic, number, offset in services.group_coordinator.all_offsets():
        partition = partitions.get(TopicPartition(topic, number))
        if partition is None:
            lag = stable_lag = 0  # deleted, or led elsewhere
        else:
            lag = max(0, partition.log.high_watermark - offset)
            stable_lag = max(0, partition.log.last_stable_offset - offset)
        found.append(Progress(group_id, topic, number, offset, lag, stable_lag))
        page.pace()
    return found


def _write_progress(page: Page, found: list[Progress], limit: int) -> None:
    shown, rest = found[:limit], found[limit:]
    if rest:
        lag, stable_lag = sum(each.lag for each in rest), sum(each.stable_lag for each in rest)
        shown.append(Progress(OTHER, "", -1, sum(each.offset for each in rest), lag, stable_lag))
    page.one(table.GROUP_OFFSETS, len(found))
    page.family(table.GROUP_OFFSET, [(each[:3], each.offset) for each in shown])
    page.family(table.GROUP_LAG, [(each[:3], each.lag) for each in shown])
    page.family(table.GROUP_STABLE_LAG, [(each[:3], each.stable_lag) for each in shown])
    sums: Counter[tuple[str, str]] = Counter()
    for each in shown:
        sums[each.group, each.topic] += each.lag
    page.family(table.GROUP_LAG_SUM, list(sums.items()))


def write_transactions(page: Page, services: Services) -> None:
    by_state: Counter[TransactionState] = Counter(dict.fromkeys(TransactionState, 0))
    wall_ms = services.clock.wall_ms()
    oldest_ms = 0
    for metadata in services.transaction_coordinator.all_transactions():
        by_state[metadata.state] += 1
        if metadata.state not in RESTING_STATES:
            oldest_ms = max(oldest_ms, wall_ms - metadata.start_ms)
        page.pace()
    page.family(table.TRANSACTIONS, [((state.title,), count) for state, count in by_state.items()])
    page.one(table.TRANSACTION_AGE, oldest_ms / 1000)
