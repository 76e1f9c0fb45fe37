"""A follower copies the logs of a real leader, byte for byte: of a kafkapy broker and of Apache Kafka.

The follower is a replica manager with a hand-made image. Broker 2 is registered with the leader's controller, so that
topics can have a replica there; it stays fenced, and the leader's ISR contains the leader alone.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.broker import Broker
from kafkapy.config import BrokerConfig
from kafkapy.controller.broker_registration import register_broker
from kafkapy.errors import Error
from kafkapy.metadata.features import SUPPORTED_FEATURES
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.types import random_uuid
from tests.api_client import ask
from tests.harness.follower import NODE_ID, Follower, registration
from tests.peers import ApacheKafka, kafka_directory

NOW_MS = 1_750_000_000_000


class Leader:
    """A broker in a process of its own, with which the test registers itself as broker 2.

    The test is then the follower of the partitions that this broker leads.
    """

    def __init__(self, address: tuple[str, int], logs: Path) -> None:
        self.address = address
        self.logs = logs
        self.client = socket.create_connection(address, timeout=30)
        self.broker_epoch = -1
        self.metadata_version = 30

    def create_topic(self, name: str, partitions: int, configs: dict[str, str] | None = None) -> bytes:
        assignments = [
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=[1, NODE_ID])
            for number in range(partitions)
        ]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10000)
        response = ask(self.client, ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse)
        assert response.topics[0].error_code == 0, response
        topic_id: bytes = response.topics[0].topic_id
        return topic_id

    def produce(self, topic: str, number: int, records: bytes) -> None:
        data = ProduceRequest.PartitionProduceData(index=number, records=records)
        request = ProduceRequest(
            acks=1,
            timeout_ms=10000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )
        error = Error.NOT_LEADER_OR_FOLLOWER
        deadline = time.monotonic() + 30
        while error in (Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION):
            # The broker may not have applied the creation of the topic yet.
            response = ask(self.client, ApiKey.PRODUCE, 9, request, ProduceResponse)
            error = Error.of(response.responses[0].partition_responses[0].error_code)
            assert time.monotonic() < deadline, response
        assert error is Error.NONE, response

    def delete_records(self, topic: str, number: int, offset: int) -> None:
        partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=number, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=1
        )
        ask(self.client, ApiKey.DELETE_RECORDS, 2, request, DeleteRecordsResponse)

    def log_bytes(self, topic: str, number: int) -> bytes:
        return log_bytes(self.logs / f"{topic}-{number}")

    def close(self) -> None:
        self.client.close()


class KafkapyLeader(Leader):
    """A kafkapy broker in this process."""

    def __init__(self, directory: Path) -> None:
        properties = {"log.dirs": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0"}
        self.broker = Broker(BrokerConfig(properties))
        self.broker.start()
        endpoint = self.broker.socket_server.endpoints[0]
        super().__init__((endpoint.host, endpoint.port), directory)
        controller = self.broker.parts.controller
        self.broker_epoch = controller.submit(
            lambda image: register_broker(image, registration(NODE_ID, -1), -1)
        ).result(30)

    def close(self) -> None:
        super().close()
        self.broker.stop()


class ApacheLeader(Leader):
    """A node of Apache Kafka."""

    def __init__(self, directory: Path, version: str) -> None:
        self.kafka = ApacheKafka(kafka_directory(version), directory).start()
        host, _, port = self.kafka.bootstrap.rpartition(":")
        super().__init__((host, int(port)), directory / "logs")
        properties = (directory / "logs" / "meta.properties").read_text()
        cluster_id = dict(line.split("=", 1) for line in properties.splitlines() if "=" in line)["cluster.id"]
        self.metadata_version = 30 if version.startswith("4") else 21
        request = BrokerRegistrationRequest(
            broker_id=NODE_ID,
            cluster_id=cluster_id,
            incarnation_id=random_uuid(),
            listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="localhost", port=1)],
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            rack=None,
            log_dirs=[random_uuid()],
        )
        with socket.create_connection(("localhost", self.kafka.controller_port), timeout=30) as controller:
            response = ask(controller, ApiKey.BROKER_REGISTRATION, 4, request, BrokerRegistrationResponse)
        assert response.error_code == 0, response
        self.broker_epoch = response.broker_epoch

    def close(self) -> None:
        super().close()
        self.kafka.stop()


def log_bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def batch(number: int, chance: random.Random, **fields: Any) -> bytes:
    builder = RecordBatchBuilder(compression=chance.choice((0, 1)), **fields)
    for count in range(chance.choice((1, 3, 50))):
        builder.append(NOW_MS + number, None, chance.randbytes(chance.choice((10, 200))) + struct.pack(">i", count))
    return builder.build()


@pytest.fixture(params=["kafkapy", *(pytest.param(version, marks=pytest.mark.peer) for version in ("4.3.0", "3.9.1"))])
def leader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Leader]:
    directory = tmp_path / "leader"
    directory.mkdir()
    found = KafkapyLeader(directory) if request.param == "kafkapy" else ApacheLeader(directory, request.param)
    yield found
    found.close()


@pytest.fixture
def follower(leader: Leader, tmp_path: Path) -> Iterator[Follower]:
    found = Follower(
        tmp_path / "follower",
        leader.address,
        broker_epoch=leader.broker_epoch,
        metadata_version=leader.metadata_version,
        properties={"num.replica.fetchers": "2"},
    )
    yield found
    found.close()
    assert found.errors == []


@pytest.mark.timeout(180)
def test_a_follower_copies_segments_and_follows_the_offsets(leader: Leader, follower: Follower, tmp_path: Path) -> None:
    chance = random.Random(7)
    configs = {"segment.bytes": str(1 << 20)}
    topic_id = leader.create_topic("t", 3, configs)
    sequences = [0, 0, 0]

    def produce(count: int) -> None:
        for number in range(count):
            partition = chance.randrange(3)
            fields: dict[str, Any] = {}
            if partition == 1:  # an idempotent producer, whose state the follower needs after an election
                fields = {"producer_id": 4000, "producer_epoch": 0, "base_sequence": sequences[1]}
            data = batch(number, chance, **fields)
            sequences[partition] += struct.unpack_from(">i", data, 57)[0]
            leader.produce("t", partition, data)

    produce(200)
    leader.produce("t", 2, large_batch())
    leader.produce("t", 2, large_batch())
    follower.follow("t", topic_id, 3, configs=configs)
    assert len(follower.manager.fetchers.fetchers) == 2
    sequences[2] += 2

    def has_caught_up() -> bool:
        return all(follower.log("t", number).high_watermark == sequences[number] for number in range(3))

    follower.wait(has_caught_up)
    produce(100)
    follower.wait(has_caught_up)
    assert follower.log("t", 1).producers.entries[4000].last_sequence == sequences[1] - 1
    counters = follower.manager.fetchers.counters
    assert counters.python == 0
    assert counters.native > 3
    leader.delete_records("t", 0, 10)
    produce(1)
    follower.wait(lambda: follower.log("t", 0).log_start_offset == 10)
    for number in range(3):
        assert log_bytes(tmp_path / "follower" / f"t-{number}") == leader.log_bytes("t", number)


def large_batch() -> bytes:
    builder = RecordBatchBuilder()
    builder.append(NOW_MS, None, bytes(700_000))
    return builder.build()


@pytest.mark.timeout(180)
def test_a_follower_with_other_records_is_truncated_to_the_common_part(leader: Leader, follower: Follower) -> None:
    """The follower's log has records of an epoch that the leader does not have."""
    topic_id = leader.create_topic("t", 1)
    chance = random.Random(8)
    leader.produce("t", 0, batch(0, chance))
    follower.follow("t", topic_id, 1)
    follower.wait(lambda: follower.log("t").log_end_offset > 0)
    common = follower.log("t").log_end_offset
    follower.follow("t", topic_id, 1, leader=-1, leader_epoch=1, partition_epoch=1)
    assert follower.call(lambda: follower.manager.fetchers.fetchers) == ()

    def diverge() -> bool:
        log = follower.log("t")
        log.append_as_leader(bytearray(batch(1, chance)), 1)
        return True

    follower.call(diverge)
    assert follower.log("t").log_end_offset > common
    # The real leader still has epoch 0: a follower of that epoch sends its own epoch 1, and learns the end of epoch 0.
    follower.call(lambda: setattr(follower.manager.partitions["t", 0], "leader_epoch", -1))
    follower.follow("t", topic_id, 1, leader_epoch=0, partition_epoch=2)
    follower.wait(lambda: follower.log("t").log_end_offset == common)
    assert follower.truncated == [follower.log("t")]
    leader.produce("t", 0, batch(2, chance))
    follower.wait(lambda: follower.log("t").high_watermark > common)
    assert follower.log("t").leader_epochs.entries == ((0, 0),)


@pytest.mark.timeout(180)
def test_a_follower_far_behind_starts_at_the_leaders_log_start(
    leader: Leader, follower: Follower, tmp_path: Path
) -> None:
    topic_id = leader.create_topic("t", 1)
    chance = random.Random(9)
    for number in range(20):
        leader.produce("t", 0, batch(number, chance))
    leader.delete_records("t", 0, 15)
    follower.follow("t", topic_id, 1)
    follower.wait(lambda: follower.log("t").log_end_offset > 15)
    log = follower.log("t")
    assert log.log_start_offset == 15
    # DeleteRecords may point into a batch: the copy begins with that whole batch.
    assert leader.log_bytes("t", 0).endswith(log_bytes(tmp_path / "follower" / "t-0"))
