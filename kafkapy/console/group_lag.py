"""The lag of groups in records and in time, and the sentences that explain it to users, which are called verdicts."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from threading import Lock

from kafkapy.client.admin import GroupDescription, OffsetAndMetadata
from kafkapy.console.cluster_view import ClusterView, Ends
from kafkapy.errors import ApiError
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

# The number of groups whose offsets a page asks for.
MOST_GROUPS = 200
# A group is lagging if it has more records to read than this; a running group is always a few records behind.
FEW_RECORDS = 10
_HOT_SHARE = 0.8
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class PartitionLag(NamedTuple):
    """A partition that a group reads: the committed offset, the first and end offset of the log (`ends`), and the id of
    the member that reads the partition.

    `member` is "" if no member reads it. `behind_ms` is the age of the first unread record in ms; None if it is
    unknown, 0 if all records are read. `stable_end` is the last stable offset, at which the first open transaction
    begins; None if it is unknown.
    """

    partition: TopicPartition
    committed: int | None
    ends: Ends
    stable_end: int | None
    member: str = ""
    behind_ms: int | None = None

    @property
    def lag(self) -> int | None:
        """The number of offsets from the committed offset to the end of the log; None if one of the two is unknown."""
        if self.committed is None or self.ends.end is None:
            return None
        return max(self.ends.end - self.committed, 0)


class GroupLag(NamedTuple):
    """The lag of a group in the partitions that were passed to `lags_of`. Partitions of which the group has committed
    no offset are left out.

    `partitions` is the number of the remaining partitions. `lag` is the sum of their known lags, None if no lag is
    known. `state` and `kind` are the group's state and type in ListGroups.
    """

    group: str
    state: str
    kind: str
    lag: int | None
    partitions: int


def total(lags: Collection[PartitionLag]) -> int | None:
    """Returns the sum of the known lags; None if no lag is known."""
    known = [each.lag for each in lags if each.lag is not None]
    return sum(known) if known else None


def partition_lags(
    view: ClusterView, described: GroupDescription | None, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> list[PartitionLag]:
    """Returns the lag of each partition of which the group has committed an offset or that a member reads.

    The result is ordered by partition. `described` is None if the members are unknown; `offsets` are the committed
    offsets. Blocks.
    """
    members = {
        each: member.member_id for member in (described.members if described else ()) for each in member.partitions
    }
    keys = sorted({*offsets, *members})
    ends = view.ends(keys)
    stable = view.ends(keys, read_committed=True)
    return [
        PartitionLag(
            key,
            offsets[key].offset if key in offsets else None,
            ends[key],
            stable[key].end,
            members.get(key, ""),
        )
        for key in keys
    ]


def lags_of(view: ClusterView, partitions: Collection[TopicPartition]) -> tuple[list[GroupLag], int]:
    """Returns (lags, omitted): the lag of each group that has committed an offset of one of the partitions.

    The greatest lag comes first. `omitted` is the number of groups whose offsets were not requested, because there are
    too many groups. Blocks.
    """
    wanted = frozenset(partitions)
    groups = [each for each in view.groups() if each.type in ("Classic", "Consumer", "")]
    asked = groups[:MOST_GROUPS]
    ends = view.ends(sorted(wanted))
    offsets = view.admin.list_group_offsets({each.group_id: None for each in asked}).values
    found = []
    for each in asked:
        committed = {key: value.offset for key, value in offsets.get(each.group_id, {}).items() if key in wanted}
        if committed:
            lags = [PartitionLag(key, offset, ends[key], None) for key, offset in committed.items()]
            found.append(GroupLag(each.group_id, each.state, each.type, total(lags), len(committed)))
    return sorted(found, key=lambda lag: -(lag.lag or 0)), len(groups) - len(asked)


class Sample(NamedTuple):
    """The state of a group at the time `seen_s` (monotonic clock, in seconds).

    `committed` and `ends` are offsets by partition. `membership` has the values that a rebalance changes: the group's
    epoch and its members' ids.
    """

    seen_s: float
    committed: dict[TopicPartition, int]
    ends: dict[TopicPartition, int]
    membership: tuple[object, ...]


class LagHistory:
    """The last `length` samples of each group whose page was shown, for at most `most` groups. Thread-safe.

    Two successive samples of a group are at least `gap_s` seconds apart.
    """

    def __init__(self, most: int = 200, length: int = 30, gap_s: float = 2.0) -> None:
        self._most, self._length, self._gap_s = most, length, gap_s
        self._samples: dict[str, deque[Sample]] = {}
        self._lock = Lock()

    def add(self, group: str, sample: Sample) -> list[Sample]:
        """Adds a sample, unless the group's newest sample is less than `gap_s` seconds older.

        Returns all samples of the group.
        """
        with self._lock:
            samples = self._samples.pop(group, None) or deque(maxlen=self._length)
            if not samples or sample.seen_s - samples[-1].seen_s >= self._gap_s:
                samples.append(sample)
            self._samples[group] = samples
            while len(self._samples) > self._most:
                del self._samples[next(iter(self._samples))]
            return list(samples)


class Verdict(NamedTuple):
    """A sentence on the lag of a group, and how bad it is: "good", "warn" or "bad"."""

    kind: str
    text: str


def verdicts(
    described: GroupDescription | None,
    lags: Sequence[PartitionLag],
    samples: Sequence[Sample],
    of_brokers: Sequence[Verdict] = (),
) -> list[Verdict]:
    """Returns sentences that explain the lag of a group, the most important one first; at least one.

    `described` is None if the group's members are unknown. `samples` are the group's samples, oldest first.
    `of_brokers` are the sentences about causes that only brokers know, such as delays by quotas; see `broker_verdicts`.
    """
    lag = total(lags)
    found: list[Verdict] = []
    if lag is None:
        return [Verdict("warn", "The group has committed no offsets, so its lag is unknown.")]
    if described is not None:
        found += _membership_verdicts(described, lags, lag, samples)
    found += _rewound(samples)
    found += _open_transactions(lags)
    found += of_brokers
    if lag > FEW_RECORDS:
        found += _hot_partition(lags, lag)
        found += _progress(described, lags, samples)
    if not found:
        text = (
            "The group has read everything."
            if lag == 0
            else f"The group is {lag} records behind, as a running group is."
        )
        if lag > FEW_RECORDS:
            return [Verdict("warn", f"The group is {lag} records behind. Look again in a few seconds for the reason.")]
        return [Verdict("good", text)]
    return found


def _membership_verdicts(
    described: GroupDescription, lags: Sequence[PartitionLag], lag: int, samples: Sequence[Sample]
) -> list[Verdict]:
    if described.state in _REBALANCING:
        return [Verdict("warn", f"The group is rebalancing ({described.state}); its members do not read meanwhile.")]
    if not described.members:
        text = "No member reads"
        return [
            Verdict("bad" if lag else "good", f"{text}; {lag} records wait." if lag else f"{text}, and nothing waits.")
        ]
    found = []
    changes = sum(a.membership != b.membership for a, b in pairwise(samples))
    if changes >= 3:
        seconds = samples[-1].seen_s - samples[0].seen_s
        found.append(
            Verdict(
                "bad", f"The membership has changed {changes} times in {seconds:.0f} s; each rebalance stops reading."
            )
        )
    unread = [each for each in lags if not each.member and each.lag]
    if unread:
        names = ", ".join(str(each.partition) for each in unread[:3])
        found.append(
            Verdict("bad", f"No member reads {names}{' and others' if len(unread) > 3 else ''}, where records wait.")
        )
    idle = [each for each in described.members if not each.partitions]
    if idle and lag > FEW_RECORDS:
        found.append(
            Verdict(
                "warn",
                f"{len(idle)} of {len(described.members)} members have no partition: more members than partitions "
                "do not help.",
            )
        )
    return found


def _rewound(samples: Sequence[Sample]) -> list[Verdict]:
    for before, after in pairwise(samples):
        back = [key for key, offset in after.committed.items() if offset < before.committed.get(key, offset)]
        if back:
            ago = time.monotonic() - after.seen_s
            return [
                Verdict(
                    "warn", f"The committed offset of {back[0]} was set back {ago:.0f} s ago; records are read again."
                )
            ]
    return []


def _open_transactions(lags: Sequence[PartitionLag]) -> list[Verdict]:
    held = [
        each
        for each in lags
        if each.committed is not None
        and each.stable_end is not None
        and each.ends.end is not None
        and each.stable_end < each.ends.end
        and each.committed >= each.stable_end
    ]
    if not held:
        return []
    first = held[0]
    waiting = (first.ends.end or 0) - (first.stable_end or 0)
    return [
        Verdict(
            "bad",
            f"An open transaction holds {first.partition} at offset {first.stable_end}: {waiting} offsets after it "
            "cannot be read by consumers of committed records. The page of transactions names its producer.",
        )
    ]


def _hot_partition(lags: Sequence[PartitionLag], lag: int) -> list[Verdict]:
    if len(lags) < 2:
        return []
    hottest = max(lags, key=lambda each: each.lag or 0)
    share = (hottest.lag or 0) / lag
    if share < _HOT_SHARE:
        return []
    return [Verdict("warn", f"{share:.0%} of the lag is in {hottest.partition}: a frequent key, or a slow member.")]


def _progress(
    described: GroupDescription | None, lags: Sequence[PartitionLag], samples: Sequence[Sample]
) -> list[Verdict]:
    """Returns the verdict on the group's progress between the first and the last sample, or an empty list if no verdict
    applies.

    The verdict says that the group commits nothing, that the lag grows, or when the group will have no lag.
    """
    if len(samples) < 2:
        return []
    first, last = samples[0], samples[-1]
    seconds = last.seen_s - first.seen_s
    read = sum(max(offset - first.committed.get(key, offset), 0) for key, offset in last.committed.items())
    written = sum(max(end - first.ends.get(key, end), 0) for key, end in last.ends.items())
    if read == 0:
        if described is None or not described.members:
            return []
        return [
            Verdict("bad", f"The group is stalled: it has committed nothing in {seconds:.0f} s while records wait.")
        ]
    left = total(lags) or 0
    if written > read:
        return [
            Verdict(
                "bad",
                f"Records arrive faster than they are read: {written / seconds:.0f} against {read / seconds:.0f} per "
                "second. The lag grows.",
            )
        ]
    rate = (read - written) / seconds
    clear = f"; at this rate the lag is gone in {left / rate:.0f} s" if rate > 0 else ""
    return [Verdict("warn", f"The group reads {read / seconds:.0f} records per second, more than arrive{clear}.")]


def first_unread_times(view: ClusterView, lags: Sequence[PartitionLag], most: int = 50) -> dict[TopicPartition, int]:
    """Returns the timestamp (ms since 1970) of the first unread record of each partition that has lag. Blocks.

    A timestamp has to be fetched with its record, so that only the `most` partitions with the greatest lag are read. A
    partition is omitted if it could not be read, or if none of the first 100 unread offsets has a record.
    """
    from kafkapy.console.record_search import times_at

    wanted = sorted((each for each in lags if each.lag), key=lambda each: -(each.lag or 0))[:most]
    try:
        return times_at(view.properties, {each.partition: (each.committed or 0, each.ends.end or 0) for each in wanted})
    except ApiError:
        return {}


def by_member(lags: Sequence[PartitionLag]) -> dict[str, list[PartitionLag]]:
    """Returns the partitions by the id of the member that reads them."""
    found: dict[str, list[PartitionLag]] = defaultdict(list)
    for each in lags:
        found[each.member].append(each)
    return found
