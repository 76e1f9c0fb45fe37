"""The topics that have counters of their own."""

from kafkapy.metrics.topic_counters import TopicCounterTable


def labels(table):
    return [counters.labels.decode() for counters in table.listed()]


def test_partitions_of_a_topic_count_together():
    table = TopicCounterTable(10)
    assert table.enter("a") is table.enter("a")
    table.enter("a").count_append(1, 10)
    table.enter("b").count_append(2, 20)
    assert labels(table) == ["", '{topic="a"}', '{topic="b"}']
    assert table.total.as_dict()["bytes_in"] == 30


def test_a_deleted_topic_leaves_the_sum_as_it_is():
    table = TopicCounterTable(10)
    for _ in range(2):
        table.enter("a").count_append(1, 10)
    table.leave("a")
    assert labels(table) == ["", '{topic="a"}']
    table.leave("a")
    assert labels(table) == [""]
    assert table.total.as_dict()["messages_in"] == 2
    assert table.enter("a").as_dict()["messages_in"] == 0


def test_those_beyond_the_limit_share_and_their_counter_never_falls():
    table = TopicCounterTable(2)
    for topic in ("a", "b", "c", "d"):
        table.enter(topic).count_append(1, 10)
    assert labels(table) == ["", '{topic="a"}', '{topic="b"}', '{topic="(other)"}']
    other = table.listed()[-1]
    assert other.as_dict()["bytes_in"] == 20
    table.leave("a")
    assert table.enter("c") is other  # its second partition: it goes on where it began
    assert table.enter("e") is not other  # there is room again
    table.leave("c")
    table.leave("c")
    table.leave("d")
    assert other.as_dict()["bytes_in"] == 20
    assert labels(table) == ["", '{topic="b"}', '{topic="e"}', '{topic="(other)"}']
