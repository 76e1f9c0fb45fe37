"""The requests that brokers and controllers send to the active controller, on its listener."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import Error
from kafkapy.metadata.features import SUPPORTED_FEATURES
from kafkapy.metadata.image import MetadataCache
from kafkapy.protocol.api import ApiKey, request_class, response_class
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kafkapy.protocol.messages.alter_partition import AlterPartitionRequest
from kafkapy.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kafkapy.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from kafkapy.protocol.messages.broker_registration import BrokerRegistrationRequest
from kafkapy.protocol.messages.controller_registration import ControllerRegistrationRequest
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerRequest
from kafkapy.server.controller_operations import ControllerOperations
from tests.api_client import CONFIG, ApiServer, ask
from tests.harness.controller import MemoryController
from tests.harness.metadata import bootstrapped, directory_of, with_brokers, with_topic
from tests.mock_clock import MockClock
from tests.reactor_harness import TIMEOUT

INCARNATION = bytes(range(16))
OTHER_INCARNATION = bytes(range(1, 17))
FAR = 10**9


class Active:
    """An active controller with brokers 1 to 3 and a topic of one partition on all of them."""

    def __init__(self) -> None:
        image = with_topic(with_brokers(bootstrapped(), 1, 2, 3), "t", 1, 3)
        self.controller = MemoryController(MetadataCache(image))
        self.server = ApiServer(controller=self.controller, image=image)
        self.server.services.metadata = self.controller.cache
        self.client = socket.create_connection(("127.0.0.1", self.server.listen("CONTROLLER")), TIMEOUT)

    @property
    def topic(self) -> Any:
        return self.controller.image.topics.by_name["t"]

    def epoch(self, broker_id: int) -> int:
        return self.controller.image.brokers[broker_id].epoch

    def send(self, key: ApiKey, version: int, request: Any) -> Any:
        return ask(self.client, key, version, request, response_class(key))

    def close(self) -> None:
        self.client.close()
        self.server.close()
        assert self.server.harness.errors == []


@pytest.fixture
def active() -> Iterator[Active]:
    running = Active()
    yield running
    running.close()


def registration(broker_id: int = 4, **changes: Any) -> BrokerRegistrationRequest:
    features = [
        BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    ]
    listener = BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="host", port=9092, security_protocol=0)
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": "cluster",
        "incarnation_id": INCARNATION,
        "listeners": [listener],
        "features": features,
        "rack": "r4",
        "log_dirs": [directory_of(broker_id)],
        **changes,
    }
    return BrokerRegistrationRequest(**fields)


def heartbeat(active: Active, broker_id: int, version: int = 2, **fields: Any) -> Any:
    request = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=fields.pop("broker_epoch", active.epoch(broker_id)),
        current_metadata_offset=fields.pop("offset", FAR),
        **fields,
    )
    return active.send(ApiKey.BROKER_HEARTBEAT, version, request)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_broker_registers_is_unfenced_and_shuts_down(active: Active, version: int) -> None:
    response = active.send(ApiKey.BROKER_REGISTRATION, version, registration())
    broker = active.controller.image.brokers[4]
    assert (response.error_code, response.broker_epoch) == (0, broker.epoch)
    assert (broker.incarnation_id, broker.rack, broker.fenced) == (INCARNATION, "r4", True)
    assert broker.endpoints["PLAINTEXT"].port == 9092
    assert broker.features == dict(SUPPORTED_FEATURES)
    assert broker.log_dirs == (directory_of(4),)
    waiting = heartbeat(active, 4, offset=0, want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced, waiting.should_shut_down) == (False, True, False)
    ready = heartbeat(active, 4)
    assert (ready.is_caught_up, ready.is_fenced, ready.should_shut_down) == (True, False, False)
    assert not active.controller.image.brokers[4].fenced
    stopping = heartbeat(active, 4, want_shut_down=True)
    assert (stopping.is_fenced, stopping.should_shut_down) == (True, True)
    assert active.controller.image.brokers[4].fenced


def test_the_versions_of_a_heartbeat_report_failed_and_cordoned_directories(active: Active) -> None:
    assert heartbeat(active, 2, 0).error_code == 0
    directories = [directory_of(4), directory_of(5)]
    assert active.send(ApiKey.BROKER_REGISTRATION, 4, registration(log_dirs=directories)).error_code == 0
    assert heartbeat(active, 4, 1, offline_log_dirs=directories[:1]).error_code == 0
    assert active.controller.image.brokers[4].log_dirs == (directory_of(5),)
    assert heartbeat(active, 3, 2, cordoned_log_dirs=[directory_of(3)]).error_code == 0
    assert active.controller.image.brokers[3].cordoned_log_dirs == (directory_of(3),)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "other"}, Error.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, Error.INVALID_REGISTRATION),
        ({"log_dirs": [directory_of(2)]}, Error.INVALID_REGISTRATION),
        ({"features": []}, Error.INVALID_REGISTRATION),
        ({"is_migrating_zk_broker": True}, Error.BROKER_ID_NOT_REGISTERED),
    ],
)
def test_a_registration_that_does_not_fit_is_refused(active: Active, changes: dict[str, Any], error: Error) -> None:
    assert active.send(ApiKey.BROKER_REGISTRATION, 4, registration(**changes)).error_code == error


def test_another_incarnation_is_a_duplicate_while_the_session_is_valid(active: Active) -> None:
    active.send(ApiKey.BROKER_REGISTRATION, 4, registration())
    heartbeat(active, 4)
    other = registration(incarnation_id=OTHER_INCARNATION)
    assert active.send(ApiKey.BROKER_REGISTRATION, 4, other).error_code == Error.DUPLICATE_BROKER_REGISTRATION


def test_a_heartbeat_with_another_epoch_is_stale(active: Active) -> None:
    response = heartbeat(active, 2, broker_epoch=active.epoch(2) + 1)
    assert response.error_code == Error.STALE_BROKER_EPOCH
    assert response.is_fenced


def test_a_broker_is_unregistered_once(active: Active) -> None:
    request = UnregisterBrokerRequest(broker_id=3)
    response = active.send(ApiKey.UNREGISTER_BROKER, 0, request)
    assert (response.error_code, response.error_message) == (0, None)
    assert 3 not in active.controller.image.brokers
    response = active.send(ApiKey.UNREGISTER_BROKER, 0, request)
    assert response.error_code == Error.BROKER_ID_NOT_REGISTERED
    assert response.error_message == "Broker ID 3 is not currently registered"


def test_a_controller_registers(active: Active) -> None:
    request = ControllerRegistrationRequest(
        controller_id=7,
        incarnation_id=INCARNATION,
        listeners=[ControllerRegistrationRequest.Listener(name="CONTROLLER", host="host", port=9093)],
        features=[
            ControllerRegistrationRequest.Feature(
                name="metadata.version", min_supported_version=7, max_supported_version=30
            )
        ],
    )
    assert active.send(ApiKey.CONTROLLER_REGISTRATION, 0, request).error_code == 0
    registered = active.controller.image.controllers[7]
    assert registered.incarnation_id == INCARNATION
    assert registered.endpoints["CONTROLLER"].port == 9093
    assert registered.features == {"metadata.version": (7, 30)}


def isr_request(active: Active, version: int, *members: int, **changes: Any) -> AlterPartitionRequest:
    partition = active.topic.partitions[0]
    fields: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        **changes,
    }
    if version >= 3:
        state = AlterPartitionRequest.BrokerState
        fields["new_isr_with_epochs"] = [state(broker_id=each, broker_epoch=active.epoch(each)) for each in members]
    else:
        fields["new_isr"] = list(members)
    topic = AlterPartitionRequest.TopicData(
        topic_id=active.topic.topic_id, partitions=[AlterPartitionRequest.PartitionData(**fields)]
    )
    leader = partition.leader
    return AlterPartitionRequest(broker_id=leader, broker_epoch=active.epoch(leader), topics=[topic])


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_changes_the_isr_and_learns_the_new_state(active: Active, version: int) -> None:
    leader = active.topic.partitions[0].leader
    response = active.send(ApiKey.ALTER_PARTITION, version, isr_request(active, version, leader))
    partition = active.topic.partitions[0]
    assert partition.isr == (leader,)
    [[altered]] = [topic.partitions for topic in response.topics]
    assert (response.error_code, altered.error_code, altered.isr) == (0, 0, [leader])
    assert (altered.leader_id, altered.leader_epoch, altered.partition_epoch, altered.leader_recovery_state) == (
        leader,
        partition.leader_epoch,
        partition.partition_epoch,
        0,
    )


def test_errors_of_alter_partition_are_those_of_its_partitions_or_of_the_broker(active: Active) -> None:
    late = isr_request(active, 3, 1, 2, leader_epoch=-1)
    [[altered]] = [topic.partitions for topic in active.send(ApiKey.ALTER_PARTITION, 3, late).topics]
    assert altered.error_code == Error.FENCED_LEADER_EPOCH
    stale = isr_request(active, 3, 1, 2)
    stale.broker_epoch += 1
    assert active.send(ApiKey.ALTER_PARTITION, 3, stale).error_code == Error.STALE_BROKER_EPOCH


def test_each_directory_assignment_has_its_result(active: Active) -> None:
    partitions = [AssignReplicasToDirsRequest.PartitionData(partition_index=each) for each in (0, 9)]
    topics = [
        AssignReplicasToDirsRequest.TopicData(topic_id=topic_id, partitions=partitions)
        for topic_id in (active.topic.topic_id, bytes(15) + b"\7")
    ]
    directory = AssignReplicasToDirsRequest.DirectoryData(id=directory_of(2), topics=topics)
    request = AssignReplicasToDirsRequest(broker_id=2, broker_epoch=active.epoch(2), directories=[directory])
    response = active.send(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, request)
    assert [
        (each.id, topic.topic_id, partition.partition_index, partition.error_code)
        for each in response.directories
        for topic in each.topics
        for partition in topic.partitions
    ] == [
        (directory_of(2), active.topic.topic_id, 0, Error.NONE),
        (directory_of(2), active.topic.topic_id, 9, Error.UNKNOWN_TOPIC_OR_PARTITION),
        (directory_of(2), bytes(15) + b"\7", 0, Error.UNKNOWN_TOPIC_ID),
        (directory_of(2), bytes(15) + b"\7", 9, Error.UNKNOWN_TOPIC_ID),
    ]
    assert active.topic.partitions[0].directory_of(2) == directory_of(2)


def test_brokers_get_different_blocks_of_producer_ids(active: Active) -> None:
    blocks = []
    for broker_id in (1, 2):
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=active.epoch(broker_id))
        response = active.send(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request)
        blocks.append((response.error_code, response.producer_id_start, response.producer_id_len))
    assert blocks == [(0, 0, 1000), (0, 1000, 1000)]
    stale = AllocateProducerIdsRequest(broker_id=1, broker_epoch=-1)
    assert active.send(ApiKey.ALLOCATE_PRODUCER_IDS, 0, stale).error_code == Error.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.BROKER_REGISTRATION, 4),
        (ApiKey.BROKER_HEARTBEAT, 2),
        (ApiKey.UNREGISTER_BROKER, 0),
        (ApiKey.CONTROLLER_REGISTRATION, 0),
        (ApiKey.ALTER_PARTITION, 3),
        (ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0),
        (ApiKey.ALLOCATE_PRODUCER_IDS, 0),
    ],
)
def test_a_controller_that_is_not_active_says_so(active: Active, key: ApiKey, version: int) -> None:
    active.controller.is_active = False
    request = registration() if key is ApiKey.BROKER_REGISTRATION else request_class(key)()
    assert active.send(key, version, request).error_code == Error.NOT_CONTROLLER


def test_a_new_epoch_of_the_controller_begins_with_full_sessions_and_contacts_extend_them() -> None:
    image = with_brokers(bootstrapped(), 1, 2)
    clock = MockClock()
    operations = ControllerOperations(BrokerConfig(CONFIG), clock, "cluster")
    first = operations.sessions(image)
    assert operations.sessions(image) is first
    clock.advance(9000)
    operations.contact(2, image.brokers[2].epoch)
    operations.contact(3, 7)  # a broker without a session
    clock.advance(1)
    fenced = operations.fence_expired()(image)
    assert fenced.response
    assert [(record.broker_id, record.fenced) for record, _ in fenced.records] == [(1, 1)]
    assert not operations.fence_expired()(image).records
    second = operations.sessions(image._replace(epoch=image.epoch + 1))
    assert second is not first
    assert second.has_valid_session(1, image.brokers[1].epoch, clock.monotonic_ms())
