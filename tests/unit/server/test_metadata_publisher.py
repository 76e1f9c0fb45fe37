"""The metadata publisher: what of a change waits for what."""

import os

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.server.metadata_publisher import MetadataPublisher
from kafkapy.types import TopicPartition
from tests.replica_world import ReplicaWorld, partition_image


def test_the_reactor_lets_go_of_a_deleted_topic_before_its_log_is_touched(tmp_path):
    world = ReplicaWorld(tmp_path)
    world.put_topic("t", [partition_image()])
    partition = TopicPartition("t", 0)
    log = world.log_manager.get_log(partition)
    path = log.path
    posted, seen = [], []

    def run_on_owner(work):
        seen.append((partition in world.manager.partitions, world.log_manager.get_log(partition) is log))
        work()
        seen.append((partition in world.manager.partitions, os.path.isdir(path)))

    publisher = MetadataPublisher(world.config, world.log_manager, world.manager, 1, posted.append, run_on_owner)
    delta = MetadataDelta(world.metadata.image)
    delta.topics.remove_topic(world.metadata.image.topics.by_name["t"].topic_id)
    world.metadata.image = delta.apply(world.metadata.image.offset + 1, 0)
    publisher.on_metadata(delta, world.metadata.image)
    assert seen == [(True, True), (False, True)]
    assert not os.path.exists(path)
    assert world.log_manager.get_log(partition) is None
    [apply] = posted
    apply()
    assert world.failures == []
