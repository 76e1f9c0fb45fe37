"""A replica manager over real logs in a directory, with a mock clock, scripted followers and a scripted controller."""

from __future__ import annotations

import os
from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.config import BrokerConfig, TopicConfig
from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import EMPTY_IMAGE, TOPIC_RESOURCE, MetadataCache
from kafkapy.metadata.topics_image import PartitionImage, TopicImage
from kafkapy.replica.alter_partition import AlterPartitionResult
from kafkapy.replica.fetch import FetchParams, FetchPartition
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import TopicPartition
from tests.harness.log_manager import create_log
from tests.mock_clock import MockClock
from tests.mock_scheduler import MockScheduler

NODE_ID = 1
NOW_MS = 1_700_000_000_000


class ScriptedController:
    """Holds proposed ISR changes until the test responds to them."""

    def __init__(self):
        self.asked = []

    def submit(self, change, on_result):
        self.asked.append((change, on_result))

    def confirm(self):
        """Confirms the oldest proposal."""
        change, on_result = self.asked.pop(0)
        on_result(
            AlterPartitionResult(Error.NONE, NODE_ID, change.leader_epoch, change.new_isr, change.partition_epoch + 1)
        )
        return change

    def refuse(self, error):
        change, on_result = self.asked.pop(0)
        on_result(AlterPartitionResult(error))
        return change


def broker(broker_id, *, fenced=False):
    return BrokerRegistration(broker_id, 100 + broker_id, bytes(16), {}, {}, None, fenced, False, (), None, False)


def partition_image(*, replicas=(NODE_ID,), isr=None, leader=NODE_ID, leader_epoch=0, partition_epoch=0):
    return PartitionImage(
        tuple(replicas),
        (bytes(16),) * len(replicas),
        tuple(replicas if isr is None else isr),
        (),
        (),
        (),
        (),
        leader,
        0,
        leader_epoch,
        partition_epoch,
    )


class ReplicaHarness:
    """A replica manager whose topics are changed as the metadata publisher does it: logs first, then `apply`."""

    def __init__(self, root, *, brokers=(NODE_ID,), overrides=None, directories=1, filesystem=None):
        paths = [str(root / f"logs{number}") for number in range(directories)]
        self.config = BrokerConfig(
            {
                "process.roles": "broker,controller",
                "node.id": str(NODE_ID),
                "log.dirs": ",".join(paths),
                **(overrides or {}),
            }
        )
        self.clock = MockClock(NOW_MS)
        self.scheduler = MockScheduler(self.clock)
        self.controller = ScriptedController()
        self.failures = []
        self.leadership: list[Any] = []
        self.metadata = MetadataCache(
            EMPTY_IMAGE._replace(brokers={broker_id: broker(broker_id) for broker_id in brokers})
        )
        self.log_manager = LogManager(
            self.config,
            filesystem=filesystem or Filesystem(),
            clock=self.clock,
            on_directory_failure=self._on_directory_failure,
            schedule=lambda delay_ms, work: None,
        )
        self.log_manager.lock()
        self.log_manager.startup(lambda topic: TopicConfig(self.config, {}), lambda *_: False, self.is_assigned)
        self.manager = ReplicaManager(
            self.config,
            self.log_manager,
            self.metadata,
            self.clock,
            self.scheduler.schedule,
            NODE_ID,
            self.controller,
            on_leadership=lambda led, followed: self.leadership.append((led, followed)),
        )

    def is_assigned(self, topic_id, partition, directory_id):
        return True

    def _on_directory_failure(self, path, error):
        self.failures.append(path)
        self.manager.handle_directory_failure(path)

    # -- metadata ------------------------------------------------------------------------------------------------

    def put_topic(self, name, partitions, *, topic_id=None, configs=None):
        """Creates or changes a topic; `partitions` are PartitionImages by number."""
        image = self.metadata.image
        known = image.topics.by_name.get(name)
        topic_id = topic_id or (known.topic_id if known else name.encode().ljust(16, b"\0"))
        topic = TopicImage(name, topic_id, dict(enumerate(partitions)) if isinstance(partitions, list) else partitions)
        delta = MetadataDelta(image)
        if known is not None and known.topic_id != topic_id:
            delta.topics.remove_topic(known.topic_id)
            self.manager.drop_topics([known])
            for number in known.partitions:
                self.log_manager.delete_log(TopicPartition(name, number))
        by_name, by_id = delta.topics._own()
        delta.topics._put(topic, by_name, by_id)
        delta.topics.changed_partitions[topic_id] = topic.partitions
        if configs is not None:
            delta.configs = {**image.configs, (TOPIC_RESOURCE, name): configs}
            delta.changed_configs.add((TOPIC_RESOURCE, name))
        self.metadata.image = delta.to_image(image.offset + 1, 0)
        for number, partition in topic.partitions.items():
            if NODE_ID in partition.replicas:
                config = TopicConfig(self.config, self.metadata.image.config(TOPIC_RESOURCE, name))
                create_log(self.log_manager, TopicPartition(name, number), topic_id, config)
        self.manager.apply(delta, self.metadata.image)
        return topic

    def put_brokers(self, *registrations):
        """Registers brokers, or changes their registrations."""
        image = self.metadata.image
        delta = MetadataDelta(image)
        delta.brokers = {**image.brokers, **{each.broker_id: each for each in registrations}}
        self.metadata.image = delta.to_image(image.offset + 1, 0)
        self.manager.apply(delta, self.metadata.image)

    def delete_topic(self, name):
        delta = MetadataDelta(self.metadata.image)
        topic = delta.topics.remove_topic(self.metadata.image.topics.by_name[name].topic_id)
        self.metadata.image = delta.to_image(self.metadata.image.offset + 1, 0)
        self.manager.drop_topics([topic])
        for number in topic.partitions:
            self.log_manager.delete_log(TopicPartition(name, number))
        self.manager.apply(delta, self.metadata.image)

    def partition(self, name="t", number=0):
        return self.manager.get_partition(TopicPartition(name, number))

    # -- data ----------------------------------------------------------------------------------------------------

    def append(self, *values, name="t", number=0, acks=1, timeout_ms=1000, **batch_fields):
        """Appends one batch. Returns the list to which the response for the partition is added."""
        answers = []
        topic_partition = TopicPartition(name, number)
        self.manager.append_records(
            timeout_ms,
            acks,
            {topic_partition: memoryview(batch(*values, **batch_fields))},
            lambda responses: answers.append(responses[topic_partition]),
        )
        return answers

    def fetch(self, offset, *, name="t", number=0, **fields):
        """Fetches one partition. Returns the list to which the FetchResult is added. `fields` are the request's."""
        answers: list[Any] = []
        of_partition = {
            key: fields.pop(key)
            for key in ("topic_id", "current_leader_epoch", "last_fetched_epoch", "log_start_offset")
            if key in fields
        }
        partition_max_bytes = fields.pop("partition_max_bytes", 1 << 20)
        params = FetchParams(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **fields})
        asked = FetchPartition(name, number, offset, partition_max_bytes, **of_partition)
        self.manager.fetch_messages(params, [asked], lambda results: answers.extend(found for _, found in results))
        return answers


def batch(*values, **fields):
    builder = RecordBatchBuilder(**fields)
    for value in values:
        builder.append(NOW_MS, None, value)
    return bytearray(builder.build())


def break_reads(log):
    """Makes every later read of the log's active segment fail, with EISDIR: its descriptor becomes a directory's."""
    directory = os.open(log.path, os.O_RDONLY)
    os.dup2(directory, log.segments.active.file.fd)
    os.close(directory)


def values_of(result):
    data = result.records if isinstance(result.records, bytes) else result.records.read()
    return [bytes(record.value or b"") for found in iterate_batches(data) for record in found]
