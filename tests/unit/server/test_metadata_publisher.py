"""The metadata publisher: the order of the steps of a change."""

import os
import threading

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import TOPIC_RESOURCE
from kafkapy.protocol.messages.metadata_records import ConfigRecord, FeatureLevelRecord, PartitionRecord, TopicRecord
from kafkapy.server.metadata_publisher import MetadataPublisher
from kafkapy.server.serial_thread import SerialThread
from kafkapy.storage.filesystem import Filesystem
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


def test_a_changed_feature_is_reported_once(tmp_path):
    harness = ReplicaHarness(tmp_path)
    posted, changes = [], []
    publisher = MetadataPublisher(
        harness.config, harness.log_manager, harness.manager, 1, posted.append, lambda work: work(),
        on_features=lambda: changes.append("features"),
    )  # fmt: skip
    for level in (1, None):
        delta = MetadataDelta(harness.metadata.image)
        if level is not None:
            delta.replay(FeatureLevelRecord(name="share.version", feature_level=level))
        harness.metadata.image = delta.to_image(harness.metadata.image.offset + 1, 0)
        publisher.on_metadata(delta, harness.metadata.image)
    for apply in posted:
        apply()
    assert changes == ["features"]


class SlowDisk(Filesystem):
    """A file system whose syncs of directories wait until `gate` is set."""

    __slots__ = ("gate",)

    def __init__(self):
        self.gate = threading.Event()

    def sync_directory(self, path):
        assert self.gate.wait(20)


def test_the_controllers_thread_does_not_wait_for_the_creation_of_logs(tmp_path):
    disk = SlowDisk()
    disk.gate.set()
    harness = ReplicaHarness(tmp_path, filesystem=disk)
    disk.gate.clear()
    posted, faults = [], []
    publisher = MetadataPublisher(
        harness.config,
        harness.log_manager,
        harness.manager,
        1,
        posted.append,
        lambda work: work(),
        disk_thread=SerialThread("test", faults.append),
    )

    def publish(change):
        delta = MetadataDelta(harness.metadata.image)
        change(delta)
        harness.metadata.image = delta.to_image(harness.metadata.image.offset + 1, 0)
        return publisher.on_metadata(delta, harness.metadata.image)

    def create(delta):
        topic_id = b"t".ljust(16, b"\0")
        delta.replay(TopicRecord(name="t", topic_id=topic_id))
        delta.replay(
            PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0)
        )

    assert publish(lambda delta: None) is None and len(posted) == 1
    created, after = publish(create), publish(lambda delta: None)
    assert not created.done() and not after.done() and len(posted) == 1
    disk.gate.set()
    after.result(20)
    assert created.done() and len(posted) == 3
    assert publish(lambda delta: None) is None
    publisher.finish()
    for apply in posted:
        apply()
    assert {*harness.manager.partitions} == {TopicPartition("t", 0)}
    assert not faults


def test_the_future_log_of_a_deleted_topic_is_deleted_although_its_log_is_offline(tmp_path):
    harness = ReplicaHarness(tmp_path, directories=2)
    harness.put_topic("t", [partition_image()])
    partition, manager = TopicPartition("t", 0), harness.log_manager
    log = manager.get_log(partition)
    [other] = [directory for directory in manager.directories if directory is not log.directory]
    manager.create_future_log(log, other)
    manager.take_offline(log.directory.path, OSError(5, "Input/output error"))
    publisher = MetadataPublisher(harness.config, manager, harness.manager, 1, [].append, lambda work: work())
    delta = MetadataDelta(harness.metadata.image)
    delta.topics.remove_topic(harness.metadata.image.topics.by_name["t"].topic_id)
    publisher.on_metadata(delta, delta.to_image(harness.metadata.image.offset + 1, 0))
    assert manager.futures.logs() == []


def test_topics_with_keys_of_older_releases_are_created_and_changed(tmp_path):
    """An upgrade of Kafka to 4 leaves such keys in the metadata; Kafka ignores them."""
    harness = ReplicaHarness(tmp_path)
    publisher = MetadataPublisher(
        harness.config, harness.log_manager, harness.manager, 1, lambda work: work(), lambda work: work()
    )
    topic_id = b"t".ljust(16, b"\0")

    def publish(*records):
        delta = MetadataDelta(harness.metadata.image)
        for record in records:
            delta.replay(record)
        harness.metadata.image = delta.to_image(harness.metadata.image.offset + 1, 0)
        publisher.on_metadata(delta, harness.metadata.image)

    def override(name, value):
        return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name=name, value=value)

    publish(
        TopicRecord(name="t", topic_id=topic_id),
        override("message.format.version", "2.8-IV1"),
        PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0),
    )
    publish(override("delete.retention.ms", "5"))
    assert harness.partition().log.config.delete_retention_ms == 5
