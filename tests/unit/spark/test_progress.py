"""Offsets and lag of each partition, from the progress that Spark reports."""

from __future__ import annotations

from kafkapy.spark import partition_progress
from kafkapy.types import TopicPartition


def test_the_lag_of_each_partition_follows_from_its_offsets():
    progress = {
        "sources": [{"endOffset": {"a": {"0": 5, "1": 7}, "$ids": {"a": "x"}}, "latestOffset": '{"a": {"0": 9}}'}]
    }
    found = partition_progress(progress)
    assert found[TopicPartition("a", 0)] == (5, 9, 4)
    assert found[TopicPartition("a", 1)] == (7, None, None)


def test_there_is_no_progress_before_the_first_batch():
    assert partition_progress({"sources": [{"endOffset": None, "latestOffset": None}]}) == {}
