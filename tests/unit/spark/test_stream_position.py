"""The offsets and ranges that the driver returns to Spark for micro-batches, with a cluster in memory."""

from __future__ import annotations

import pytest

from kafkapy.errors import ApiError, ConfigError
from kafkapy.spark.data_loss import DataLossError
from kafkapy.spark.options import read_options
from kafkapy.spark.source_cluster import SourcePartitions
from kafkapy.spark.stream_position import StreamPosition
from kafkapy.types import TopicPartition
from tests.memory_source_cluster import MemorySourceCluster
from tests.mock_clock import MockClock


class Query:
    """A query as Spark runs it: offsets are passed as JSON, and each batch begins where the last one ended."""

    def __init__(self, cluster, start=None, **more):
        servers = {"kafka.bootstrap.servers": "h:1"}
        options = read_options({**servers, "subscribe": "a", **more}, is_streaming=True)
        self.clock = MockClock()
        self.position = StreamPosition(options, cluster=cluster, clock=self.clock)
        self.start = self.position.initial().to_json() if start is None else start

    def plan(self, *, is_unlimited=False):
        return self.position.next_end(self.start, is_unlimited=is_unlimited).to_json()

    def batch(self, **how):
        end = self.plan(**how)
        ranges = [(str(each.partition), each.start, each.end) for each in self.position.ranges(self.start, end)]
        self.start = end
        return ranges


@pytest.fixture
def cluster():
    made = MemorySourceCluster("a")
    made.add("a", 10, 4)
    return made


def test_batches_follow_each_other(cluster):
    query = Query(cluster, startingOffsets="earliest")
    assert query.batch() == [("a-0", 0, 10), ("a-1", 0, 4)]
    before = query.start
    assert query.batch() == [] and query.start == before
    cluster.grow("a", 1, 3)
    assert query.batch() == [("a-1", 4, 7)]
    assert query.position.latest_seen() == {"a": {"0": 10, "1": 7}}


def test_the_first_offset_is_found_once(cluster):
    query = Query(cluster)
    cluster.grow("a", 0, 5)
    assert query.position.initial().to_json() == query.start
    assert query.batch() == [("a-0", 10, 15)]


def test_a_repeated_first_batch_has_the_same_records(cluster):
    query = Query(cluster)
    cluster.grow("a", 0, 5)
    end = query.plan()
    cluster.grow("a", 0, 100)
    again = Query(cluster)
    assert [tuple(each)[1:] for each in again.position.ranges(again.start, end)] == [(10, 15)]


def test_an_idle_first_batch_repeated_is_empty(cluster):
    end = Query(cluster).plan()
    cluster.grow("a", 0, 100)
    again = Query(cluster)
    assert again.position.ranges(again.start, end) == []
    again.start = end
    assert again.batch() == [("a-0", 10, 110)]


def test_limits_and_all_there_is(cluster):
    query = Query(cluster, startingOffsets="earliest", maxOffsetsPerTrigger="7")
    assert query.batch() == [("a-0", 0, 5), ("a-1", 0, 2)]
    assert query.batch(is_unlimited=True) == [("a-0", 5, 10), ("a-1", 2, 4)]


def test_a_minimum_waits(cluster):
    query = Query(cluster, startingOffsets="earliest", minOffsetsPerTrigger="5", maxTriggerDelay="10s")
    assert len(query.batch()) == 2
    cluster.grow("a", 0, 4)
    assert query.batch() == []
    query.clock.advance(10_000)
    assert query.batch() == [("a-0", 10, 14)]


def test_available_now_stops_at_what_was_there(cluster):
    query = Query(cluster, startingOffsets="earliest", maxOffsetsPerTrigger="100", minOffsetsPerTrigger="50")
    query.position.stop_at_latest()
    cluster.grow("a", 0, 5)
    assert query.batch() == [("a-0", 0, 10), ("a-1", 0, 4)]
    cluster.grow("a", 2, 9)
    assert query.batch() == []


def test_a_partition_is_added(cluster):
    query = Query(cluster, startingOffsets="earliest")
    query.batch()
    cluster.grow("a", 2, 6)
    assert query.batch() == [("a-2", 0, 6)]


def test_a_topic_is_created_again(cluster):
    for fails in ("true", "false"):
        query = Query(cluster, startingOffsets="earliest", failOnDataLoss=fails)
        query.batch()
        cluster.delete("a")
        cluster.add("a", 50, 4, topic_id=f"new-{fails}")
        if fails == "true":
            with pytest.raises(DataLossError, match="deleted and created again"):
                query.batch()
        else:
            assert query.batch() == [("a-0", 0, 50), ("a-1", 0, 4)]


def test_a_topic_goes_and_comes_again(cluster):
    query = Query(cluster, startingOffsets="earliest", failOnDataLoss="false")
    query.batch()
    cluster.delete("a")
    assert query.plan() == query.start, "positions and id are kept"
    assert query.batch() == []
    cluster.add("a", 3, topic_id="new")
    assert query.batch() == [("a-0", 0, 3)]
    query = Query(cluster, startingOffsets="earliest")
    query.batch()
    cluster.delete("a")
    with pytest.raises(DataLossError, match="Partition a-0 is gone"):
        query.plan()


@pytest.mark.parametrize("topic_id", [None, "new"])
def test_a_batch_is_repeated_whose_topic_has_gone_or_was_created_again(cluster, topic_id):
    query = Query(cluster, startingOffsets="earliest")
    query.batch()
    cluster.grow("a", 0, 5)
    start, end = query.start, query.plan()
    cluster.delete("a")
    if topic_id is not None:
        cluster.add("a", 50, 4, topic_id=topic_id)
    with pytest.raises(DataLossError, match=r"Partition a-0 is gone|a-0 was deleted and created again"):
        Query(cluster, start).position.ranges(start, end)
    again = Query(cluster, start, failOnDataLoss="false")
    assert again.position.ranges(start, end) == []
    again.start = end
    assert again.batch() == ([] if topic_id is None else [("a-0", 0, 50), ("a-1", 0, 4)])


def test_a_repeated_batch_keeps_a_topic_that_is_not_selected_any_more(cluster, monkeypatch):
    query = Query(cluster, startingOffsets="earliest")
    query.batch()
    cluster.grow("a", 0, 5)
    start, end = query.start, query.plan()
    expected = query.position.ranges(start, end)
    narrower = Query(cluster, start, subscribe="b")
    selected = SourcePartitions([TopicPartition("b", 0)], {"b": "id-of-b"}, [])
    monkeypatch.setattr(narrower.position._cluster, "partitions", lambda: selected)
    assert narrower.position.ranges(start, end) == expected != []


def test_a_topic_that_one_look_up_does_not_find_is_not_gone(cluster, monkeypatch):
    """A broker that has just started may not know all topics yet."""
    query = Query(cluster, startingOffsets="earliest")
    query.batch()
    cluster.grow("a", 0, 5)
    start, end = query.start, query.plan()
    expected = query.position.ranges(start, end)
    again = Query(cluster, start)
    look_up = again.position._cluster.partitions
    empty = look_up()._replace(partitions=[], ids={}, missing=["a"])
    answers = [empty]
    monkeypatch.setattr(again.position._cluster, "partitions", lambda: answers.pop() if answers else look_up())
    assert again.position.ranges(start, end) == expected != []


def test_the_log_lost_its_beginning(cluster):
    for fails in ("true", "false"):
        query = Query(cluster, startingOffsets='{"a": {"0": 2, "1": 0}}', failOnDataLoss=fails)
        cluster.truncate("a", 0, 6)
        if fails == "true":
            with pytest.raises(DataLossError, match="a-0 begins at offset 6, not 2"):
                query.batch()
        else:
            assert query.batch() == [("a-0", 6, 10), ("a-1", 0, 4)]


def test_an_older_spark_passes_no_start(cluster):
    query = Query(cluster, startingOffsets="earliest")
    end = query.position.next_end(None, is_unlimited=True).to_json()
    assert [tuple(each)[1:] for each in query.position.ranges(query.start, end)] == [(0, 10), (0, 4)]
    restarted = Query(cluster, start=end)
    cluster.grow("a", 0, 1)
    later = restarted.position.next_end(None, is_unlimited=True).to_json()
    assert [tuple(each)[1:] for each in restarted.position.ranges(end, later)] == [(10, 11)]


def test_a_missing_topic_is_an_error():
    with pytest.raises(ApiError, match="a: "):
        Query(MemorySourceCluster("a"))


def test_an_added_partition_that_begins_later_has_lost_records(cluster):
    for fails in ("true", "false"):
        query = Query(cluster, startingOffsets="earliest", failOnDataLoss=fails)
        query.batch()
        cluster.grow("a", 2, 6)
        cluster.truncate("a", 2, 1)
        if fails == "true":
            with pytest.raises(DataLossError, match="Added partition a-2 starts from 1 instead of 0"):
                query.batch()
            del cluster.bounds[TopicPartition("a", 2)]
        else:
            assert query.batch() == [("a-2", 1, 6)]


def test_a_partition_whose_start_is_not_stored_is_read_from_its_first_record(cluster):
    """Spark's own source wrote the checkpoint, without the new partition's start and the ids of topics."""
    cluster.truncate("a", 1, 1)
    start, end = {"a": {"0": 5}}, {"a": {"0": 10, "1": 4}}
    lenient = Query(cluster, start=start, failOnDataLoss="false").position
    assert [tuple(each)[1:] for each in lenient.ranges(start, end)] == [(5, 10), (1, 4)]
    with pytest.raises(DataLossError, match="Added partition a-1 starts from 1 instead of 0"):
        Query(cluster, start=start).position.ranges(start, end)


def test_an_end_that_has_moved_back_is_a_loss(cluster):
    for fails in ("true", "false"):
        query = Query(cluster, startingOffsets="earliest", failOnDataLoss=fails)
        query.batch()
        cluster.bounds[TopicPartition("a", 0)] = (0, 6)
        if fails == "true":
            with pytest.raises(DataLossError, match="a-0's offset was changed from 10 to 6"):
                query.batch()
            cluster.bounds[TopicPartition("a", 0)] = (0, 10)
        else:
            assert query.batch() == []
            cluster.grow("a", 0, 1)
            assert query.batch() == [("a-0", 6, 7)]


def test_records_up_to_the_target_that_were_read_before_are_no_loss(cluster):
    query = Query(cluster, startingOffsets="earliest")
    query.position.stop_at_latest()
    start = {"a": {"0": 15, "1": 4}}
    cluster.grow("a", 0, 9)
    assert query.position.next_end(start, is_unlimited=True).to_json()["a"] == {"0": 15, "1": 4}


def test_the_minimum_counts_unread_records_only(cluster):
    query = Query(cluster, startingOffsets="earliest", minOffsetsPerTrigger="5", maxTriggerDelay="10s")
    query.batch()
    cluster.grow("a", 0, 5)
    assert query.plan(is_unlimited=True) != query.start
    assert query.batch() == [("a-0", 10, 15)]
    assert query.position.latest_seen() == {"a": {"0": 15, "1": 4}}


def test_the_position_closes_its_cluster_and_has_seen_nothing_at_first(cluster):
    query = Query(cluster, startingOffsets="earliest")
    assert query.position.latest_seen() is None
    query.position.close()
    assert cluster.is_closed


def test_a_checkpoint_of_another_owner_is_refused(cluster):
    """Without the check, the query would continue at the position of another program."""
    query = Query(cluster, startingOffsets="earliest", checkpointOwner="word-count")
    first = query.start
    query.batch()
    assert first["$owner"] == query.start["$owner"] == "word-count"
    own = Query(cluster, query.start, checkpointOwner="word-count")
    assert own.batch() == []
    other = Query(cluster, query.start, checkpointOwner="hot-search")
    for ask in (other.plan, lambda: other.position.ranges(first, query.start)):
        with pytest.raises(ConfigError, match=r"belongs to word-count, and this is hot-search.*give it another folder"):
            ask()
    assert Query(cluster, query.start).batch() == [], "a query without the option takes every checkpoint"


def test_an_owner_adopts_a_checkpoint_without_one(cluster):
    query = Query(cluster, startingOffsets="earliest")
    query.batch()
    cluster.grow("a", 0, 1)
    adopted = Query(cluster, query.start, checkpointOwner="hot-search")
    assert adopted.batch() == [("a-0", 10, 11)]
    assert adopted.start["$owner"] == "hot-search"
