"""The topics of a retry chain, and the topic to which a failed record goes next."""

from __future__ import annotations

import pytest

from kafkapy.client.reliable.chain_headers import ChainState
from kafkapy.client.reliable.key_order import WaitingKeys
from kafkapy.client.reliable.records import Failure
from kafkapy.client.reliable.retry_plan import RetryPlan
from kafkapy.errors import ConfigError

PLAN = RetryPlan(["a", "b.retry.9"], [100, 2000])
STATE = ChainState("a", 0, 5, 1)


def test_a_chain_has_a_topic_for_each_delay():
    assert list(PLAN.chains()) == [
        ("a", ["a.retry.1", "a.retry.2"], "a.dlt"),
        ("b.retry.9", ["b.retry.9.retry.1", "b.retry.9.retry.2"], "b.retry.9.dlt"),
    ]
    assert [PLAN.place_of(each) for each in PLAN.all_read()] == [
        *(("a", level) for level in range(3)),
        *(("b.retry.9", level) for level in range(3)),
    ]


def test_a_failed_record_goes_up_level_by_level():
    first = PLAN.after_failure("a", 0, STATE, RuntimeError(), 1000)
    assert (first.topic, first.state.attempts, first.state.level, first.state.due_ms) == ("a.retry.1", 1, 1, 1100)
    second = PLAN.after_failure("a", 1, first.state, RuntimeError(), 1100)
    assert (second.topic, second.state.attempts, second.state.due_ms) == ("a.retry.2", 2, 3100)
    last = PLAN.after_failure("a", 2, second.state, RuntimeError(), 3100)
    assert (last.topic, last.is_dead, last.state.attempts) == ("a.dlt", True, 3)


def test_a_failure_ends_the_retries():
    assert PLAN.after_failure("a", 0, STATE, Failure("no"), 0).topic == "a.dlt"


@pytest.mark.parametrize(
    ("topics", "delays", "message"),
    [
        ([], [1], "At least one"),
        (["a"], [-1], "not negative"),
        (["a"], [1] * 33, "at most 32"),
        (["a" * 245], [1], "249"),
        (["a", "a.dlt"], [1], "circles"),
        (["a", "a.retry.1"], [1], "circles"),
    ],
)
def test_plans_that_cannot_work_are_refused(topics, delays, message):
    with pytest.raises(ConfigError, match=message):
        RetryPlan(topics, delays)


def test_a_key_waits_until_its_last_record_was_handled():
    keys, place = WaitingKeys(2), ("a", 0)
    keys.change(place, b"k", 1, 1)
    keys.change(place, b"k", 2, 1)
    keys.confirm()
    assert keys.is_behind(place, b"k", 0) and keys.is_behind(place, b"k", 1) and not keys.is_behind(place, b"k", 2)
    keys.change(place, b"k", 2, -1)
    assert not keys.is_behind(place, b"k", 1)
    keys.roll_back()
    assert keys.is_behind(place, b"k", 1)
    keys.change(place, b"k", 2, -1)
    keys.change(place, b"k", 1, -1)
    keys.change(place, b"k", 1, -1)
    assert (keys.key_count, keys.is_behind(place, b"k", 0)) == (0, False)


def test_the_number_of_waiting_keys_is_limited():
    keys, place = WaitingKeys(1), ("a", 0)
    keys.change(place, b"k", 1, 1)
    assert not keys.is_full_for(place, b"k") and keys.is_full_for(place, b"other") and not keys.is_full_for(place, None)
    keys.forget(place)
    assert not keys.is_full_for(place, b"other")
