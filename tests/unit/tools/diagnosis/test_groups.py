"""The doctor's view of share and streams groups, and of records at the delivery limit."""

from __future__ import annotations

from kafkapy.client.admin import InternalTopic, Subtopology
from kafkapy.tools.diagnosis.groups import (
    GroupFacts,
    ShareGroupFacts,
    StreamsGroupFacts,
    check_groups,
    records_at_limit,
)

CHANGELOG = InternalTopic("app-counts-changelog", 0, 1, {})
TOPOLOGY = (Subtopology("0", ("words", "names"), (), (CHANGELOG,), ()),)


def shown(share=None, streams=None, topics=None):
    return [(each.level, each.text) for each in check_groups(GroupFacts(share or {}, streams or {}, topics or {}))]


def not_ready(topics):
    return shown(streams={"app": StreamsGroupFacts("NotReady", 1, TOPOLOGY, 0)}, topics=topics)[0]


def test_a_cluster_without_such_groups_has_no_findings():
    assert shown() == []


def test_share_groups_are_shown_with_their_lag():
    groups = {"busy": ShareGroupFacts("Stable", 2, 7), "idle": ShareGroupFacts("Empty", 0, 5)}
    assert shown(share=groups) == [
        ("note", "group idle has no members, and 5 records wait for it"),
        ("good", "2 groups, which have not finished 12 records"),
    ]


def test_a_streams_group_that_is_not_ready_is_explained():
    assert not_ready({"names": 1}) == ("warning", "group app is not ready: source topic words does not exist")
    assert not_ready({})[1].endswith("source topics names, words do not exist")
    assert not_ready({"names": 1, "words": 2})[1].endswith(
        "the topics of subtopology 0 may have to be partitioned alike: names has 1, words has 2"
    )
    assert "internal topic app-counts-changelog does not exist" in not_ready({"names": 2, "words": 2})[1]
    ready = {"names": 2, "words": 2, "app-counts-changelog": 2}
    assert not_ready(ready)[1].endswith("the coordinator has not validated its topology yet")


def test_a_streams_group_without_members_is_shown_with_its_lag():
    assert shown(streams={"app": StreamsGroupFacts("Empty", 0, TOPOLOGY, 3)}) == [
        ("note", "group app has no members, and 3 records wait for it"),
        ("good", "1 groups, which have not processed 3 records"),
    ]


def test_many_records_at_the_delivery_limit_are_a_warning():
    name = "kafkapy_sharegroup_last_deliveries"
    lines = [
        f'{name}{{group="{group}",topic="t",partition="{number}"}} {count}'
        for group, number, count in (("bad", 0, 60), ("bad", 1, 40), ("good", 0, 99))
    ]
    (finding,) = records_at_limit("\n".join([f"# TYPE {name} gauge", *lines, ""]))
    assert (finding.level, finding.text) == ("warning", "100 records of topic t are at the delivery limit of group bad")
