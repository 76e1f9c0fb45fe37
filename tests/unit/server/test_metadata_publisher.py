"""The metadata publisher: the order of the steps of a change."""

import os

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.protocol.messages.metadata_records import PartitionRecord
from kafkapy.server.metadata_publisher import MetadataPublisher
from kafkapy.types import TopicPartition
from tests.harness.replica import ReplicaHarness, partition_image


def test_the_reactor_lets_go_of_a_deleted_topic_before_its_log_is_touched(tmp_path):
    harness = ReplicaHarness(tmp_path)
    harness.put_topic("t", [partition_image()])
    partition = TopicPartition("t", 0)
    log = harness.log_manager.get_log(partition)
    path = log.path
    posted, seen = [], []

    def run_on_owner(work):
        seen.append((partition in harness.manager.partitions, harness.log_manager.get_log(partition) is log))
        work()
        seen.append((partition in harness.manager.partitions, os.path.isdir(path)))

    publisher = MetadataPublisher(harness.config, harness.log_manager, harness.manager, 1, posted.append, run_on_owner)
    delta = MetadataDelta(harness.metadata.image)
    delta.topics.remove_topic(harness.metadata.image.topics.by_name["t"].topic_id)
    harness.metadata.image = delta.to_image(harness.metadata.image.offset + 1, 0)
    publisher.on_metadata(delta, harness.metadata.image)
    assert seen == [(True, True), (False, True)]
    assert not os.path.exists(path)
    assert harness.log_manager.get_log(partition) is None
    [apply] = posted
    apply()
    assert harness.failures == []


def test_the_log_of_a_replica_that_moved_to_another_broker_is_deleted(tmp_path):
    harness = ReplicaHarness(tmp_path)
    harness.put_topic("t", [partition_image(replicas=(1, 2)), partition_image(replicas=(1, 2))])
    moved, kept = TopicPartition("t", 0), TopicPartition("t", 1)
    path = harness.log_manager.get_log(moved).path
    posted = []
    publisher = MetadataPublisher(
        harness.config, harness.log_manager, harness.manager, 1, posted.append, lambda work: work()
    )
    delta = MetadataDelta(harness.metadata.image)
    topic = harness.metadata.image.topics.by_name["t"]
    record = PartitionRecord(
        partition_id=0, topic_id=topic.topic_id, replicas=[2], isr=[2], leader=2, leader_epoch=1, partition_epoch=1
    )
    delta.topics.put_partition(record)
    harness.metadata.image = delta.to_image(harness.metadata.image.offset + 1, 0)
    publisher.on_metadata(delta, harness.metadata.image)
    assert not os.path.exists(path)
    assert harness.log_manager.get_log(moved) is None
    assert harness.log_manager.get_log(kept) is not None
    [apply] = posted
    apply()
    assert {*harness.manager.partitions} == {kept}
    assert harness.failures == []
