"""Offsets in Spark's checkpoint and the batches between them."""

from __future__ import annotations

import json

from kafkapy.spark.stream_offset import OffsetRange, StreamOffset, plan_micro_batch
from kafkapy.types import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_the_json_is_sparks_with_keys_of_our_own():
    offset = StreamOffset({A1: 5, A0: 7}, {"a": "x"}, {A1: 3}, True)
    told = offset.to_json()
    assert json.dumps(told) == (
        '{"a": {"0": 7, "1": 5}, "$ids": {"a": "x"}, "$from": {"a": {"1": 3}}, "$initial": true}'
    )
    assert StreamOffset.from_json(told) == offset
    assert StreamOffset.from_json({"a": {"0": 7}}) == StreamOffset({A0: 7})


def test_a_batch_lies_between_two_offsets():
    plan = plan_micro_batch(StreamOffset({A0: 3, A1: 4}, {"a": "x"}), StreamOffset({A0: 5, A1: 4}, {"a": "x"}))
    assert plan.ranges == [OffsetRange(A0, 3, 5)] and not plan.unknown and not plan.losses


def test_the_first_batch_begins_where_its_end_says():
    moved_on = StreamOffset({A0: 9}, is_initial=True)
    end = StreamOffset({A0: 6}, starts={A0: 2})
    assert plan_micro_batch(moved_on, end).ranges == [OffsetRange(A0, 2, 6)]
    assert plan_micro_batch(StreamOffset({A0: 9}, is_initial=True), StreamOffset({A0: 6})).losses


def test_the_stored_start_is_that_of_its_batch_only():
    end_of_first = StreamOffset({A0: 6}, starts={A0: 2})
    assert plan_micro_batch(end_of_first, StreamOffset({A0: 8}, starts={A0: 1})).ranges == [OffsetRange(A0, 6, 8)]


def test_new_partitions_begin_at_their_stored_start():
    start = StreamOffset({A0: 3})
    assert plan_micro_batch(start, StreamOffset({A0: 3, A1: 5}, starts={A1: 1})).ranges == [OffsetRange(A1, 1, 5)]
    assert plan_micro_batch(start, StreamOffset({A0: 3, A1: 5})).unknown == [A1]


def test_a_topic_created_again_begins_again_and_is_a_loss():
    plan = plan_micro_batch(StreamOffset({A0: 3}, {"a": "x"}), StreamOffset({A0: 9}, {"a": "y"}, {A0: 0}))
    assert plan.ranges == [OffsetRange(A0, 0, 9)]
    assert plan.losses == ["The topic of partition a-0 was deleted and created again"]


def test_a_partition_that_is_gone_or_went_back_is_a_loss():
    assert plan_micro_batch(StreamOffset({A0: 3, A1: 1}), StreamOffset({A0: 3})).losses == ["a-1 are gone"]
    plan = plan_micro_batch(StreamOffset({A0: 3}), StreamOffset({A0: 1}))
    assert plan.losses == ["Partition a-0's offset was changed from 3 to 1"] and not plan.ranges
