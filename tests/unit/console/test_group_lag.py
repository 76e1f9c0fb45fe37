"""The verdict on a group's lag follows from its members, its offsets and their samples."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafkapy.client.admin import GroupDescription, GroupListing, MemberDescription, Node, OffsetAndMetadata
from kafkapy.console.cluster_view import Ends
from kafkapy.console.group_lag import LagHistory, PartitionLag, Sample, lags_of, verdicts
from kafkapy.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
NODE = Node(1, "localhost", 9092, None)


def group(*members, state="Stable"):
    listed = tuple(MemberDescription(name, None, name, "host", partitions) for name, partitions in members)
    return GroupDescription("g", "Consumer", state, "consumer", "range", listed, NODE)


def lag(partition, committed, end, member="m", stable=None):
    return PartitionLag(partition, committed, Ends(0, end), end if stable is None else stable, member)


def sample(seen_s, committed, end, membership=("m",)):
    return Sample(seen_s, {A: committed}, {A: end}, membership)


ONE = group(("m", (A, B)))


@pytest.mark.parametrize(
    ("described", "lags", "samples", "kind", "text"),
    [
        (ONE, [lag(A, 100, 100)], [], "good", "has read everything"),
        (ONE, [lag(A, 95, 100)], [], "good", "5 records behind"),
        (ONE, [lag(A, 0, 100)], [], "warn", "Look again"),
        (ONE, [lag(A, None, 100)], [], "warn", "has committed no offsets"),
        (group(), [lag(A, 0, 100, "")], [], "bad", "No member reads; 100 records wait"),
        (group(), [lag(A, 100, 100, "")], [], "good", "nothing waits"),
        (group(("m", ()), state="PreparingRebalance"), [lag(A, 0, 100)], [], "warn", "is rebalancing"),
        (ONE, [lag(A, 0, 100, ""), lag(B, 100, 100)], [], "bad", "No member reads t-0"),
        (group(("m", (A,)), ("n", ())), [lag(A, 0, 100)], [], "warn", "1 of 2 members have no partition"),
        (ONE, [lag(A, 50, 100, stable=50)], [], "bad", "An open transaction holds t-0 at offset 50"),
        (ONE, [lag(A, 0, 1000), lag(B, 99, 100)], [], "warn", "of the lag is in t-0"),
        (ONE, [lag(A, 5, 100)], [sample(0, 5, 50), sample(10, 5, 100)], "bad", "is stalled"),
        (ONE, [lag(A, 10, 100)], [sample(0, 5, 50), sample(10, 10, 100)], "bad", "Records arrive faster"),
        (ONE, [lag(A, 50, 100)], [sample(0, 5, 90), sample(10, 50, 100)], "warn", "gone in 14 s"),
        (ONE, [lag(A, 2, 100)], [sample(0, 50, 90), sample(10, 2, 100)], "warn", "was set back"),
    ],
)
def test_a_verdict_names_the_reason(described, lags, samples, kind, text):
    found = verdicts(described, lags, samples)
    assert (kind, True) in [(each.kind, text in each.text) for each in found]


def test_changes_of_the_membership_are_rebalances():
    samples = [sample(number, 5, 50, (number,)) for number in range(5)]
    assert any("membership has changed 4 times" in each.text for each in verdicts(ONE, [lag(A, 0, 100)], samples))


def test_a_history_is_bounded():
    history = LagHistory(most=2, length=3, gap_s=1.0)
    for name in ("a", "b", "c"):
        for second in range(6):
            samples = history.add(name, sample(second, 0, 0))
    assert [each.seen_s for each in samples] == [3, 4, 5]
    assert len(history.add("a", sample(9, 0, 0))) == 1
    assert len(history.add("a", sample(9.5, 0, 0))) == 1


@pytest.mark.parametrize(("ends", "lag"), [({A: 7, B: 9}, 6), ({A: 7, B: None}, 2), ({A: None, B: None}, None)])
def test_an_end_that_cannot_be_read_does_not_count_as_read(ends, lag):
    committed = {A: OffsetAndMetadata(5), B: OffsetAndMetadata(5)}
    view = SimpleNamespace(
        groups=lambda: [GroupListing("g", "consumer", "Stable", "Classic")],
        ends=lambda keys: {key: Ends(0, ends[key]) for key in keys},
        admin=SimpleNamespace(list_group_offsets=lambda groups: SimpleNamespace(values={"g": committed})),
    )
    ((found,), omitted) = lags_of(view, [A, B])
    assert (found.lag, found.partitions, omitted) == (lag, 2, 0)
