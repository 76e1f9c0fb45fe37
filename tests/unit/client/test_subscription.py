"""A consumer's subscription: kinds that exclude each other, positions, durations."""

from __future__ import annotations

import re

import pytest

from kafkapy.client import SubscriptionError
from kafkapy.client.cluster import TopicInfo
from kafkapy.client.metrics import ClientMetrics
from kafkapy.client.subscription import PartitionState, Subscription, duration_ms, reset_timestamp
from kafkapy.types import SystemClock, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_by_hand_and_by_group_exclude_each_other():
    subscription = Subscription()
    subscription.assign_manually([T0])
    with pytest.raises(SubscriptionError):
        subscription.subscribe(["t"])
    subscription.unsubscribe()
    subscription.subscribe(["t"])
    with pytest.raises(SubscriptionError):
        subscription.assign_manually([T0])


def test_partitions_that_stay_keep_their_state():
    subscription = Subscription()
    subscription.assign_manually([T0])
    subscription.state(T0).jump(7)
    subscription.assign_manually([T0, T1])
    assert subscription.state(T0).position == 7
    assert subscription.state(T1).position is None
    with pytest.raises(ValueError, match="No current assignment for partition t-2"):
        subscription.state(TopicPartition("t", 2))


def test_a_jump_makes_earlier_fetches_stale():
    subscription = Subscription()
    subscription.assign_manually([T0])
    state = subscription.state(T0)
    before = state.generation
    state.jump_by(-2)
    assert (state.position, state.reset, state.is_fetchable, state.generation) == (None, -2, False, before + 1)
    state.jump(3)
    assert (state.position, state.fetch_offset, state.reset, state.is_fetchable) == (3, 3, None, True)


def test_the_lag_and_the_lead_are_the_distances_from_the_ends_of_the_partition():
    state = PartitionState(15)
    metrics = ClientMetrics("consumer", "mine", SystemClock(), window_ms=60_000, number=2)
    state.measure(metrics)
    assert (state.lag, state.lead, state.metrics) == (None, None, None)
    state.high_watermark, state.log_start_offset = 20, 5
    state.measure(metrics)
    state.position = 17
    state.measure(metrics)
    assert (state.lag, state.lead) == (3, 12)
    measured = state.metrics
    assert (measured.lag.average, measured.lag.maximum) == (4.0, 5)
    assert (measured.lead.average, measured.lead.minimum) == (11.0, 10)
    state.high_watermark, state.log_start_offset = 0, 30  # of another leader, which has lost records
    assert (state.lag, state.lead) == (0, 0)


def test_patterns():
    subscription = Subscription()
    subscription.subscribe((), re.compile("^a"))
    topics = {name: TopicInfo(name, bytes(16), name == "a_internal", ()) for name in ("ab", "ba", "a", "a_internal")}
    assert subscription.matching(topics) == {"ab", "a"}
    every = Subscription(excludes_internal=False)
    every.subscribe((), re.compile("^a"))
    assert every.matching(topics) == {"ab", "a", "a_internal"}


@pytest.mark.parametrize(("text", "expected"), [("PT1S", 1000), ("P1DT1H", 90_000_000), ("PT1M0.5S", 60_500)])
def test_durations(text, expected):
    assert duration_ms(text) == expected
    assert reset_timestamp(f"by_duration:{text}", 10**12) == 10**12 - expected


def test_resets():
    assert (reset_timestamp("latest", 0), reset_timestamp("earliest", 0), reset_timestamp("none", 0)) == (-1, -2, None)
