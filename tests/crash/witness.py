"""A client that records what a broker has acknowledged, and checks that the next broker still has it.

It sends one request at a time, with acks=all, as one idempotent producer. If a request gets no answer, or an error that
may be retried, the change may exist or not; `check` looks at the next broker and records which.
"""

from __future__ import annotations

import socket
from typing import Any, NamedTuple

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.protocol.messages.describe_configs import DescribeConfigsRequest
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.api_client import ask

TIMEOUT_S = 20
TIMEOUT_MS = 10_000
TIMESTAMP = 1_700_000_000_000
TOPIC_RESOURCE = 2


class NoAnswer(Exception):
    """Raised if the connection broke before the answer: the request may have been executed or not."""


class Batch(NamedTuple):
    """Records that are sent in one request, all with the same value."""

    base_sequence: int
    value: bytes
    count: int  # type: ignore[assignment]  # hides the method of tuple


class WitnessedPartition:
    """The acknowledged values of a partition in order; `pending` was sent but not acknowledged."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.pending: Batch | None = None


class WitnessedTopic:
    def __init__(self, partitions: int, configs: dict[str, str]) -> None:
        self.partitions = {index: WitnessedPartition() for index in range(partitions)}
        self.configs = configs


class Witness:
    """The client; owns one connection, which `connect` opens again. Used by one thread; any thread may call `hang_up`.

    `topics` exist; `maybe` has the topics whose creation or deletion was not answered, and `maybe_configs` the values
    that the configuration of a topic may have instead.
    """

    def __init__(self) -> None:
        self.topics: dict[str, WitnessedTopic] = {}
        self.maybe: dict[str, WitnessedTopic] = {}
        self.maybe_configs: dict[tuple[str, str], str] = {}
        self.maybe_partitions: dict[str, int] = {}
        self.producer_id = -1
        self.sequence = 0
        self._socket: socket.socket | None = None

    # -- asking --------------------------------------------------------------------------------------------------

    def connect(self, port: int) -> None:
        self.hang_up()
        self._socket = socket.create_connection(("localhost", port), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def hang_up(self) -> None:
        """Interrupts any thread that waits for an answer. Any thread may call it."""
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # the other end has closed the connection already

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        if self._socket is None:
            raise NoAnswer
        try:
            return ask(self._socket, key, version, request, response_class(key))
        except TimeoutError:
            raise
        except OSError as error:
            raise NoAnswer from error

    # -- promises ------------------------------------------------------------------------------------------------

    def create(self, name: str, partitions: int = 1, **configs: str) -> Error:
        """Creates a topic; the keyword `max_message_bytes="5"` sets max.message.bytes=5."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()
            ],
        )
        created = WitnessedTopic(partitions, settings)
        self.maybe[name] = created
        answer = self.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS))
        error = Error(answer.topics[0].error_code)
        if error is Error.NONE:
            del self.maybe[name]
            self.topics[name] = created
        return error

    def delete(self, name: str) -> Error:
        self.maybe[name] = self.topics.pop(name)
        state = DeleteTopicsRequest.DeleteTopicState(name=name)
        answer = self.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[state], timeout_ms=TIMEOUT_MS))
        error = Error(answer.responses[0].error_code)
        if error is Error.NONE:
            del self.maybe[name]
        return error

    def grow(self, name: str, partitions: int) -> Error:
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        self.maybe_partitions[name] = partitions
        answer = self.ask(ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS))
        error = Error(answer.results[0].error_code)
        if error is Error.NONE:
            self._grown(name)
        return error

    def _grown(self, name: str) -> None:
        known = self.topics[name].partitions
        for index in range(len(known), self.maybe_partitions.pop(name)):
            known[index] = WitnessedPartition()

    def alter(self, name: str, key: str, value: str) -> Error:
        config = IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=0, value=value)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configs=[config]
        )
        self.maybe_configs[name, key] = value
        request = IncrementalAlterConfigsRequest(resources=[resource])
        error = Error(self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code)
        if error is Error.NONE:
            self.topics[name].configs[key] = self.maybe_configs.pop((name, key))
        return error

    def become_producer(self) -> None:
        """Requests a new producer id, whose sequences begin at 0."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS)
        answer = self.ask(ApiKey.INIT_PRODUCER_ID, 4, request)
        assert answer.error_code == 0
        assert answer.producer_id > self.producer_id, "a producer id was given out twice"
        self.producer_id = answer.producer_id
        self.sequences: dict[tuple[str, int], int] = {}

    def produce(self, name: str, index: int, value: bytes, count: int = 1) -> Error:
        """Appends records to a partition; a batch that is still pending is sent first."""
        partition = self.topics[name].partitions[index]
        if partition.pending is not None:
            error = self._send(name, index, partition, partition.pending)
            if error is not Error.NONE:
                return error
        sequence = self.sequences.get((name, index), 0)
        return self._send(name, index, partition, Batch(sequence, value, count))

    def _send(self, name: str, index: int, partition: WitnessedPartition, batch: Batch) -> Error:
        builder = RecordBatchBuilder(producer_id=self.producer_id, producer_epoch=0, base_sequence=batch.base_sequence)
        is_compacted = "compact" in self.topics[name].configs.get("cleanup.policy", "")
        for number in range(batch.count):
            # unique keys, so that compaction removes no record
            key = b"%d" % (batch.base_sequence + number) if is_compacted else None
            builder.append(TIMESTAMP + number, key, batch.value)
        data = ProduceRequest.PartitionProduceData(index=index, records=builder.build())
        topic = ProduceRequest.TopicProduceData(name=name, partition_data=[data])
        partition.pending = batch
        answer = self.ask(ApiKey.PRODUCE, 9, ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic]))
        found = answer.responses[0].partition_responses[0]
        if found.error_code == 0:
            assert found.base_offset == len(partition.values), "acknowledged at another offset"
            partition.values += [batch.value] * batch.count
            self._settle(name, index, partition, batch)
        return Error(found.error_code)

    def _settle(self, name: str, index: int, partition: WitnessedPartition, batch: Batch) -> None:
        partition.pending = None
        self.sequences[name, index] = batch.base_sequence + batch.count

    # -- holding the broker to them ------------------------------------------------------------------------------

    def check(self) -> None:
        """Checks that everything acknowledged exists once. Requests without an answer may have either result."""
        found = self._settle_topics()
        for name, topic in self.topics.items():
            for answer in found[name].partitions:
                assert answer.error_code == 0 and answer.leader_id >= 0, (name, answer.partition_index)
            for index in topic.partitions:
                self._check_partition(name, index, found[name].topic_id)
            self._check_configs(name)

    def _described(self) -> dict[str, Any]:
        answer = self.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return {topic.name: topic for topic in answer.topics if not topic.name.startswith("__")}

    def topic_ids(self) -> dict[str, bytes]:
        return {name: topic.topic_id for name, topic in self._described().items()}

    def _settle_topics(self) -> dict[str, Any]:
        found = self._described()
        for name, topic in self.maybe.items():
            if name in found:
                self.topics[name] = topic
        self.maybe.clear()
        missing, unknown = set(self.topics) - set(found), set(found) - set(self.topics)
        assert not missing and not unknown, f"topics lost: {missing}, topics from nowhere: {unknown}"
        for name in list(self.maybe_partitions):
            if name in found and len(found[name].partitions) == self.maybe_partitions[name]:
                self._grown(name)
        self.maybe_partitions.clear()
        for name, topic in self.topics.items():
            assert len(found[name].partitions) == len(topic.partitions), f"partitions of {name} are lost"
        return found

    def _check_partition(self, name: str, index: int, topic_id: bytes) -> None:
        partition = self.topics[name].partitions[index]
        found = self.read(topic_id, index)
        expected = list(partition.values)
        pending = partition.pending
        if pending is not None and len(found) > len(expected):
            expected += [pending.value] * pending.count
            partition.values = expected
            self._settle(name, index, partition, pending)
        assert [offset for offset, _ in found] == list(range(len(found))), f"offsets of {name}-{index} are not dense"
        assert len(found) == len(expected), f"{name}-{index}: {len(found)} records instead of {len(expected)}"
        wrong = [offset for offset, value in found if value != expected[offset]]
        assert not wrong, f"{name}-{index}: other records than acknowledged at {wrong[:5]}"

    def read(self, topic_id: bytes, index: int) -> list[tuple[int, bytes]]:
        """Returns (offset, value) of every record up to the high watermark."""
        found: list[tuple[int, bytes]] = []
        while True:
            offset = found[-1][0] + 1 if found else 0
            asked = FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=8 << 20)
            topic = FetchRequest.FetchTopic(topic_id=topic_id, partitions=[asked])
            request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=16 << 20, topics=[topic])
            answer = self.ask(ApiKey.FETCH, 13, request).responses[0].partitions[0]
            assert answer.error_code == 0, f"fetch of partition {index} at {offset}: {Error(answer.error_code).name}"
            if not answer.records:
                assert answer.high_watermark == offset, f"nothing at {offset}, high watermark {answer.high_watermark}"
                return found
            found += [
                (record.offset, bytes(record.value or b""))
                for batch in iterate_batches(bytes(answer.records))
                for record in batch
                if record.offset >= offset
            ]

    def _check_configs(self, name: str) -> None:
        configs = self.topics[name].configs
        open_values = {key: value for (topic, key), value in self.maybe_configs.items() if topic == name}
        keys = sorted({*configs, *open_values})
        if not keys:
            return
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=keys
        )
        answer = self.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource])).results[0]
        for entry in answer.configs:
            allowed = {configs.get(entry.name), open_values.get(entry.name)} - {None}
            if entry.name in configs:
                assert entry.value in allowed, f"{name}: {entry.name}={entry.value} instead of {allowed}"
            if entry.value == open_values.get(entry.name):
                configs[entry.name] = entry.value
            self.maybe_configs.pop((name, entry.name), None)
