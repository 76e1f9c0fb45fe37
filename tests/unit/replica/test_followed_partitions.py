"""The replica manager starts and stops fetching as the metadata changes roles; the fetcher manager is a recording
one."""

from __future__ import annotations

import pytest

from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.types import TopicPartition
from tests.harness.replica import NODE_ID, ReplicaHarness, partition_image

LEADER_ID = 2
REPLICAS = (NODE_ID, LEADER_ID)
NAME = TopicPartition("t", 0)


class NotedFetchers:
    """A fetcher manager that stores the partitions that it has to follow, and those that may no longer be followed."""

    def __init__(self, may_follow):
        self.may_follow = may_follow
        self.followed = {}
        self.closed = False
        self.configurations = []

    @property
    def partitions(self):
        return self.followed.keys()

    def on_roles(self, led, followed):
        for partition in led:
            self.followed.pop(partition.topic_partition, None)
        for partition in followed:
            if self.may_follow(partition) and partition.leader_id != NO_LEADER:
                self.followed[partition.topic_partition] = partition.leader_id, partition.leader_epoch
            else:
                self.followed.pop(partition.topic_partition, None)

    def reconfigure(self, config):
        self.configurations.append(config)

    def follow_throttles(self):
        pass

    def close(self):
        self.closed = True


@pytest.fixture
def made():
    return []


@pytest.fixture
def harness(tmp_path, made):
    def make(may_follow):
        made.append(NotedFetchers(may_follow))
        return made[-1]

    found = ReplicaHarness(tmp_path, brokers=REPLICAS)
    found.manager._make_fetchers = make
    return found


def image(*, leader=LEADER_ID, leader_epoch=0, partition_epoch=0, isr=REPLICAS):
    return partition_image(
        replicas=REPLICAS, isr=isr, leader=leader, leader_epoch=leader_epoch, partition_epoch=partition_epoch
    )


def test_fetchers_are_made_when_a_partition_first_follows_another_broker(harness, made):
    harness.put_topic("t", [image(leader=NODE_ID)])
    harness.put_topic("t", [image(leader=NO_LEADER, leader_epoch=1, partition_epoch=1)])
    assert made == []
    harness.put_topic("t", [image(leader_epoch=2, partition_epoch=2)])
    (fetchers,) = made
    assert fetchers.followed == {NAME: (LEADER_ID, 2)}
    harness.put_topic("u", [image()])
    assert len(made) == 1
    assert set(fetchers.followed) == {NAME, TopicPartition("u", 0)}
    harness.manager.shutdown()
    assert fetchers.closed


@pytest.mark.parametrize("change", ["lead", "no leader", "not assigned", "deleted", "directory"])
def test_fetching_ends_with_the_role(harness, made, change):
    harness.put_topic("t", [image()])
    if change == "lead":
        harness.put_topic("t", [image(leader=NODE_ID, leader_epoch=1, partition_epoch=1)])
    elif change == "no leader":
        harness.put_topic("t", [image(leader=NO_LEADER, leader_epoch=1, partition_epoch=1)])
    elif change == "not assigned":
        harness.put_topic("t", [partition_image(replicas=(LEADER_ID,), leader=LEADER_ID, partition_epoch=1)])
    elif change == "deleted":
        harness.delete_topic("t")
    else:
        harness.manager.handle_directory_failure(harness.partition().log.directory.path)
    assert made[0].followed == {}


def test_a_recreated_topic_is_followed_again(harness, made):
    harness.put_topic("t", [image()])
    harness.put_topic("t", [image(leader_epoch=3)], topic_id=b"new".ljust(16, b"\0"))
    assert made[0].followed == {NAME: (LEADER_ID, 3)}
    assert harness.partition().topic_id == b"new".ljust(16, b"\0")


def test_a_controlled_shutdown_ends_fetching_where_this_broker_left_the_isr(harness, made):
    harness.put_topic("t", [image(), image(), image(isr=(LEADER_ID,))])
    harness.manager.begin_controlled_shutdown()
    (fetchers,) = made
    assert {name.partition for name in fetchers.followed} == {0, 1}
    left = image(isr=(LEADER_ID,), partition_epoch=1)  # the leader and its epoch stay
    harness.put_topic("t", [left, image(), image(isr=(LEADER_ID,))])
    assert {name.partition for name in fetchers.followed} == {1}


def test_an_isr_change_does_not_end_fetching_otherwise(harness, made):
    harness.put_topic("t", [image()])
    harness.put_topic("t", [image(isr=(LEADER_ID,), partition_epoch=1)])
    assert made[0].followed == {NAME: (LEADER_ID, 0)}


def test_a_changed_configuration_reaches_the_fetchers(harness, made):
    harness.put_topic("t", [image()])
    harness.put_topic("t", [image()], configs={"retention.ms": "1"})
    harness.manager.follow_broker_config(harness.metadata.image)
    assert made[0].configurations == [harness.config] * 2


def test_reads_wait_for_the_high_watermark_of_a_followed_partition(harness):
    """A consumer may read from a follower (KIP-392)."""
    harness.put_topic("t", [image(leader=NODE_ID)])
    harness.append(b"record")
    harness.put_topic("t", [image(leader_epoch=1, partition_epoch=1)])
    log = harness.partition().log
    log.high_watermark = 0
    answers = harness.fetch(0, only_leader=False, max_wait_ms=500)
    assert answers == []
    log.follow_high_watermark(1)
    harness.manager.on_followed_high_watermarks([NAME, TopicPartition("gone", 0)])
    assert [result.high_watermark for result in answers] == [1]
