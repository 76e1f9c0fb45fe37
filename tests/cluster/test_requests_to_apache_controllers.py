"""The requests of a broker of ours to a controller of Apache Kafka: registration, heartbeats, forwarding, reports.

The broker's part is played by this process: its heartbeats claim to have applied all metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.controller.producer_ids import ProducerIdsBlock
from kafkapy.errors import Error
from kafkapy.metadata.image import MetadataCache
from kafkapy.nodes.node_channel import Destination, NodeChannel
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kafkapy.quorum.broker_heartbeats import BrokerHeartbeats, LifecycleState
from kafkapy.replica.alter_partition import AlterPartitionResult, IsrChange
from kafkapy.server.api_registry import CONTROLLER as CONTROLLER_LISTENER
from kafkapy.server.api_registry import ApiRegistry
from kafkapy.server.forwarding import Forwarding
from kafkapy.server.handlers import CONTROLLER_HANDLER_MODULES
from kafkapy.server.remote_controller import (
    ControllerChannels,
    RemoteAlterPartition,
    RemoteDirectoryAssignments,
    blocks_from_remote_controller,
)
from kafkapy.types import TopicPartition, random_uuid
from tests.api_client import CONFIG, ApiServer, ask
from tests.cluster.cluster import Cluster, Spec, Voters
from tests.cluster.nodes import CONTROLLER, Flavour
from tests.harness.controller import MemoryController

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
WAIT_S = 60
BROKER = 9
FAR = 1 << 40


class BrokerRequests:
    """The parts of broker 9 that send requests to the controller of `cluster`."""

    def __init__(self, cluster: Cluster) -> None:
        self.thread = NodeThread()
        self.controller = Destination(1, "127.0.0.1", cluster[1].controller_port)
        self.posted: Queue[Callable[[], None]] = Queue()
        properties = CONFIG | {
            "node.id": str(BROKER),
            "controller.quorum.voters": f"{BROKER}@localhost:9093",
            "broker.heartbeat.interval.ms": "200",
        }
        self.config = BrokerConfig(properties)
        self.channels = ControllerChannels.open(self.config, self.thread, lambda: self.controller)
        self.directory_id = random_uuid()
        self.fatal: list[BaseException] = []
        self.heartbeats = BrokerHeartbeats(
            self.config,
            self.thread,
            self.channels.heartbeats,
            cluster_id=cluster.cluster_id,
            metadata_offset=lambda: FAR,
            cordoned_directories=tuple,
            on_fatal=self.fatal.append,
        )
        self.clients = ApiServer(
            controller=MemoryController(MetadataCache(), is_active=False),
            make_forwarding=lambda post: Forwarding(self.channels.forwarding, post),
        )

    def wait_for(self, results: list[Any]) -> Any:
        """Plays the reactor's thread until there is a result."""
        while not results:
            self.posted.get(timeout=WAIT_S)()
        return results[-1]

    def ask(self, key: ApiKey, version: int, request: Any, response_class: Any) -> Any:
        """Sends a request of a client to the broker, which forwards it."""
        return ask(self.clients.connect(), key, version, request, response_class)

    def close(self) -> None:
        self.thread.stop()
        self.clients.close()


@pytest.fixture(params=[Flavour.KAFKA_43, Flavour.KAFKA_39], ids=["4.3", "3.9"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerRequests]:
    with Cluster(tmp_path, [Spec(request.param, CONTROLLER)], voters=Voters.STATIC, by_own_tool=True) as cluster:
        made = BrokerRequests(cluster)
        try:
            yield made
        finally:
            made.close()


def test_a_broker_of_ours_lives_under_a_controller_of_apache_kafka(broker: BrokerRequests) -> None:
    heartbeats = broker.heartbeats
    epoch = heartbeats.register([broker.directory_id], -1)
    assert epoch >= 0
    heartbeats.unfence()

    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic])
    [created] = broker.ask(ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse).topics
    assert (created.error_code, created.num_partitions) == (Error.NONE, 2)
    [refused] = broker.ask(ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse).topics
    assert refused.error_code == Error.TOPIC_ALREADY_EXISTS

    port = RemoteAlterPartition(
        broker.channels.alter_partition,
        BROKER,
        lambda: heartbeats.broker_epoch,
        broker.posted.put,
        lambda delay_ms, work: broker.thread.schedule(delay_ms, lambda: broker.posted.put(work)),  # type: ignore[arg-type, return-value]
    )
    results: list[AlterPartitionResult] = []
    partition = TopicPartition("t", 0)
    port.submit(IsrChange(partition, created.topic_id, 0, 0, 0, (BROKER,), (-1,)), results.append)
    assert broker.wait_for(results) == AlterPartitionResult(Error.NONE, BROKER, 0, (BROKER,), 0)
    port.submit(IsrChange(partition, created.topic_id, 0, 0, 0, (BROKER, 8), (-1, -1)), results.append)
    results.clear()
    assert broker.wait_for(results).error is Error.INVALID_REQUEST

    directories = RemoteDirectoryAssignments(
        broker.thread, broker.channels.directories, BROKER, lambda: heartbeats.broker_epoch
    )
    directories.assign({(created.topic_id, 0): broker.directory_id, (created.topic_id, 7): broker.directory_id}).result(
        WAIT_S
    )

    blocks: list[ProducerIdsBlock | Error] = []
    allocate = blocks_from_remote_controller(
        broker.channels.forwarding, broker.posted.put, BROKER, lambda: heartbeats.broker_epoch
    )
    allocate(blocks.append)
    assert broker.wait_for(blocks) == ProducerIdsBlock(0, 1000)

    heartbeats.give_up_leaderships()
    assert heartbeats.state is LifecycleState.STOPPED
    heartbeats.end_session()
    assert not broker.fatal
    unregister = UnregisterBrokerRequest(broker_id=BROKER)
    response = broker.ask(ApiKey.UNREGISTER_BROKER, 0, unregister, UnregisterBrokerResponse)
    assert response.error_code == Error.NONE
    response = broker.ask(ApiKey.UNREGISTER_BROKER, 0, unregister, UnregisterBrokerResponse)
    assert response.error_code == Error.BROKER_ID_NOT_REGISTERED


def test_our_controller_serves_the_versions_that_apache_kafkas_serves(broker: BrokerRequests) -> None:
    channel = NodeChannel(broker.thread, broker.controller, client_id="tests")
    responses: Queue[Any] = Queue()

    def ask_controller(key: ApiKey, request: Any) -> Any:
        channel.send(request, key, lambda response, version, error: responses.put(response), FAR)
        return responses.get(timeout=WAIT_S)

    software = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    theirs = {each.api_key: (each.min_version, each.max_version) for each in ask_controller(
        ApiKey.API_VERSIONS, software).api_keys}  # fmt: skip
    ours = {each.key: (each.lowest, each.highest) for each in
            ApiRegistry(CONTROLLER_HANDLER_MODULES, CONTROLLER_LISTENER).served()}  # fmt: skip
    for key in ours:
        assert ours[key][0] <= theirs[key][1]
        assert ours[key][1] >= theirs[key][0]
    described = ask_controller(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=2))
    assert (described.error_code, described.endpoint_type) == (0, 2)
    assert described.controller_id in (1, -1)  # of 3.9, while its leader is not known
    mismatched = ask_controller(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=1))
    assert mismatched.error_code == Error.MISMATCHED_ENDPOINT_TYPE
    assert mismatched.error_message == (
        "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
    )
