"""Offsets and lag of each partition, from what Spark reports."""

from __future__ import annotations

from kafkapy.spark import partition_progress
from kafkapy.types import TopicPartition


def test_lag_by_partition():
    progress = {
        "sources": [{"endOffset": {"a": {"0": 5, "1": 7}, "$ids": {"a": "x"}}, "latestOffset": '{"a": {"0": 9}}'}]
    }
    found = partition_progress(progress)
    assert found[TopicPartition("a", 0)] == (5, 9, 4)
    assert found[TopicPartition("a", 1)] == (7, None, None)


def test_before_the_first_batch():
    assert partition_progress({"sources": [{"endOffset": None, "latestOffset": None}]}) == {}
