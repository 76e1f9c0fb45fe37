"""Requests to a running broker as old clients send them: each on a new connection, without ApiVersions before it."""

from __future__ import annotations

import socket
import time
from typing import Any

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, response_class, response_header_version
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.header import ResponseHeader
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.api_client import request_bytes
from tests.reactor_harness import frame, receive_frame
from tests.server_process import ServerProcess

TIMEOUT_MS = 10_000
NOT_LED_YET = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_LEADER_OR_FOLLOWER)


def ask(server: ServerProcess, key: ApiKey, version: int, body: Any) -> Any:
    """Returns the decoded response to one request."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(frame(request_bytes(key, version, body)))
        payload = receive_frame(client)
    header_size = len(ResponseHeader(correlation_id=7).encode(response_header_version(key, version)))
    return response_class(key).decode(payload, version, header_size)


def create_topic(server: ServerProcess, name: str, **configs: str) -> None:
    """Creates a topic of one partition; `compression_type="zstd"` stands for compression.type=zstd."""
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    answer = ask(server, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS))
    assert [each.error_code for each in answer.topics] == [0], answer
    # Apache Kafka answers when the controller has the topic, which may be before the broker leads it.
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while (error := fetch(server, name, 0, 4).error_code) in NOT_LED_YET:
        assert time.monotonic() < deadline, f"{name} is not led yet: {Error(error).name}"
        time.sleep(0.02)


def produce(server: ServerProcess, topic: str, records: bytes | None, version: int) -> Any:
    """Returns the response for partition 0."""
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=1, timeout_ms=TIMEOUT_MS, topic_data=topics)
    return ask(server, ApiKey.PRODUCE, version, request).responses[0].partition_responses[0]


def fetch(server: ServerProcess, topic: str, offset: int, version: int, *, max_bytes: int = 1 << 20) -> Any:
    """Returns the response for partition 0 without waiting; `max_bytes` is the partition's limit."""
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=50 << 20,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )
    return ask(server, ApiKey.FETCH, version, request).responses[0].partitions[0]
