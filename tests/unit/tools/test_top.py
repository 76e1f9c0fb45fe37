"""The pages of `kafkapy top`: rates and changes between two samples, within the size of a terminal."""

from __future__ import annotations

from kafkapy.client.admin import ClusterDescription, Node, PartitionDescription, TopicDescription
from kafkapy.tools.top import ClusterSample, GroupState, page_of
from kafkapy.types import TopicPartition

CLUSTER = ClusterDescription("c1", None, (Node(1, "localhost", 9092, None),))


def sample(taken_s, ends, groups, group_count=None):
    topics = {
        name: TopicDescription(name, b"", False, tuple(PartitionDescription(n, 1, 0, (1, 2), (1,)) for n in range(2)))
        for name in ends
    }
    found = {TopicPartition(name, 0): end for name, end in ends.items()}
    return ClusterSample(taken_s, CLUSTER, topics, found, groups, len(groups) if group_count is None else group_count)


def test_rates_are_those_between_two_sights():
    before = sample(10.0, {"slow": 1000, "busy": 0}, [GroupState("g", "Stable", 50)])
    after = sample(14.0, {"slow": 1004, "busy": 400, "new": 7}, [GroupState("g", "Stable", 90)])
    lines = page_of(after, before, 100, 30)
    assert "topics 3   partitions 6   out of sync 6   without leader 0   records/s 101" in lines[0]
    assert [line.split() for line in lines[3:6]] == [
        ["busy", "2", "400", "100.0"],
        ["slow", "2", "1004", "1.0"],
        ["new", "2", "7", "-"],
    ]
    assert lines[-1].split() == ["g", "Stable", "90", "+10.0"]


def test_the_first_page_has_no_rates():
    lines = page_of(sample(1.0, {"t": 5}, [GroupState("g", "Empty", None)], 4), None, 100, 30)
    assert lines[3].split() == ["t", "2", "5", "-"]
    assert lines[-2].split() == ["g", "Empty", "-", "-"]
    assert lines[-1] == "(3 groups are not shown)"


def test_a_page_fits_the_terminal():
    many = sample(1.0, {f"a-very-long-name-of-a-topic-{number:03}": number for number in range(200)}, [])
    for width, height in ((80, 24), (40, 10), (200, 60)):
        lines = page_of(many, None, width, height)
        assert len(lines) <= height
        assert max(map(len, lines)) <= width


def test_names_of_groups_cannot_move_the_cursor():
    lines = page_of(sample(1.0, {}, [GroupState("\x1b[2Jgone\n", "Stable", 1)]), None, 100, 30)
    assert not any("\x1b" in line or "\n" in line for line in lines)
