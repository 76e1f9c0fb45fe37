"""AlterPartition, directory assignments and blocks of producer ids over requests to the active controller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from queue import Queue
from typing import Any

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.controller.producer_ids import ProducerIdsBlock
from kafkapy.errors import Error
from kafkapy.nodes.controller_channel import ControllerChannel
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from kafkapy.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kafkapy.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from kafkapy.replica.alter_partition import AlterPartitionResult, IsrChange
from kafkapy.server.remote_controller import (
    MAX_ASSIGNMENTS_PER_REQUEST,
    ControllerChannels,
    RemoteAlterPartition,
    RemoteDirectoryAssignments,
    blocks_from_remote_controller,
)
from kafkapy.types import TopicPartition
from tests.api_client import CONFIG
from tests.harness.stub_node import StubNode

WAIT_S = 20
NODE = 1
EPOCH = 77
TOPIC_ID = bytes(range(16))


class Owner:
    """The reactor's thread, played by the test: `run` does what was posted, until a condition holds."""

    def __init__(self) -> None:
        self._posted: Queue[Callable[[], None]] = Queue()
        self.scheduled: list[int] = []

    def post(self, work: Callable[[], None]) -> None:
        self._posted.put(work)

    def schedule(self, delay_ms: int, work: Callable[[], Any]) -> Any:
        self.scheduled.append(delay_ms)
        self.post(work)

    def run(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self._posted.get(timeout=WAIT_S)()


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def node() -> Iterator[StubNode]:
    with StubNode() as running:
        yield running


@pytest.fixture
def channel(thread: NodeThread, node: StubNode) -> ControllerChannel:
    return ControllerChannel(
        thread,
        lambda: Destination(2, "127.0.0.1", node.port),
        client_id="1",
        request_timeout_ms=30_000,
        retry_timeout_ms=60_000,
    )


def change(partition: int, *isr: int, epochs: tuple[int, ...] = (), partition_epoch: int = 3) -> IsrChange:
    return IsrChange(TopicPartition("t", partition), TOPIC_ID, 5, partition_epoch, 0, isr, epochs)


def altered(request: AlterPartitionRequest, error: Error = Error.NONE) -> AlterPartitionResponse:
    """Accepts every change of a request."""
    topics = []
    for topic in request.topics:
        partitions = [
            AlterPartitionResponse.PartitionData(
                partition_index=each.partition_index,
                error_code=error,
                leader_id=NODE,
                leader_epoch=each.leader_epoch,
                isr=[member.broker_id for member in each.new_isr_with_epochs] or each.new_isr,
                partition_epoch=each.partition_epoch + 1,
            )
            for each in topic.partitions
        ]
        topics.append(AlterPartitionResponse.TopicData(topic_id=topic.topic_id, partitions=partitions))
    return AlterPartitionResponse(topics=topics)


class TestAlterPartition:
    @pytest.fixture
    def port(self, channel: ControllerChannel, owner: Owner) -> RemoteAlterPartition:
        return RemoteAlterPartition(channel, NODE, lambda: EPOCH, owner.post, owner.schedule)

    @pytest.mark.parametrize("version", [2, 3])
    def test_a_change_names_the_epochs_of_the_members_as_far_as_the_version_has_them(
        self, node: StubNode, port: RemoteAlterPartition, owner: Owner, version: int
    ) -> None:
        node.versions[ApiKey.ALTER_PARTITION] = (2, version)
        node.answers[ApiKey.ALTER_PARTITION] = lambda request, _: altered(request)
        results: list[AlterPartitionResult] = []
        port.submit(change(0, NODE, 2, 3, epochs=(-1, 40, -1)), results.append)
        owner.run(lambda: results)
        assert results == [AlterPartitionResult(Error.NONE, NODE, 5, (NODE, 2, 3), 4)]
        [request] = node.of(ApiKey.ALTER_PARTITION)
        assert (request.broker_id, request.broker_epoch) == (NODE, EPOCH)
        [partition] = request.topics[0].partitions
        members = [(each.broker_id, each.broker_epoch) for each in partition.new_isr_with_epochs]
        assert members == ([(NODE, EPOCH), (2, 40), (3, -1)] if version == 3 else [])
        assert partition.new_isr == ([] if version == 3 else [NODE, 2, 3])

    def test_changes_that_are_submitted_while_a_request_is_in_flight_share_the_next(
        self, node: StubNode, port: RemoteAlterPartition, owner: Owner
    ) -> None:
        release = threading.Event()

        def wait(request: AlterPartitionRequest, _: int) -> AlterPartitionResponse:
            assert release.wait(WAIT_S)
            return altered(request)

        node.answers[ApiKey.ALTER_PARTITION] = wait
        results: list[tuple[int, Error]] = []
        for partition in range(4):
            port.submit(
                change(partition, NODE), partial(lambda at, result: results.append((at, result.error)), partition)
            )
        release.set()
        owner.run(lambda: len(results) == 4)
        assert sorted(results) == [(partition, Error.NONE) for partition in range(4)]
        sent = [[each.partition_index for each in request.topics[0].partitions] for request in
                node.of(ApiKey.ALTER_PARTITION)]  # fmt: skip
        assert sent == [[0], [1, 2, 3]]

    def test_a_newer_change_replaces_an_unsent_one(
        self, node: StubNode, port: RemoteAlterPartition, owner: Owner
    ) -> None:
        node.answers[ApiKey.ALTER_PARTITION] = lambda request, _: altered(request)
        results: list[tuple[str, Error]] = []
        port.submit(change(0, NODE), lambda result: results.append(("other partition", result.error)))
        port.submit(change(1, NODE), lambda result: results.append(("older", result.error)))
        port.submit(change(1, NODE, 2), lambda result: results.append(("newer", result.error)))
        owner.run(lambda: len(results) == 3)
        assert ("older", Error.OPERATION_NOT_ATTEMPTED) in results
        assert ("newer", Error.NONE) in results

    def test_a_result_that_cannot_be_handled_harms_no_other_partition(
        self, node: StubNode, port: RemoteAlterPartition, owner: Owner, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(result: AlterPartitionResult) -> None:
            raise AssertionError("from a callback")

        node.answers[ApiKey.ALTER_PARTITION] = lambda request, _: altered(request)
        results: list[AlterPartitionResult] = []
        port.submit(change(0, NODE), results.append)  # the next changes share a request
        port.submit(change(1, NODE), fail)
        port.submit(change(2, NODE), results.append)
        owner.run(lambda: len(results) == 2)
        port.submit(change(1, NODE), results.append)
        owner.run(lambda: len(results) == 3)
        assert [each.error for each in results] == [Error.NONE] * 3
        assert "from a callback" in caplog.text

    def test_an_error_of_the_whole_request_leads_to_the_same_changes_again(
        self, node: StubNode, port: RemoteAlterPartition, owner: Owner
    ) -> None:
        node.answers[ApiKey.ALTER_PARTITION] = lambda request, _: (
            altered(request)
            if len(node.of(ApiKey.ALTER_PARTITION)) > 2
            else AlterPartitionResponse(error_code=Error.STALE_BROKER_EPOCH)
        )
        results: list[AlterPartitionResult] = []
        port.submit(change(0, NODE), results.append)
        owner.run(lambda: results)
        assert [each.error for each in results] == [Error.NONE]
        assert owner.scheduled == [50, 50]

    def test_an_error_of_a_partition_is_its_result(
        self, node: StubNode, port: RemoteAlterPartition, owner: Owner
    ) -> None:
        node.answers[ApiKey.ALTER_PARTITION] = lambda request, _: altered(request, Error.INELIGIBLE_REPLICA)
        results: list[AlterPartitionResult] = []
        port.submit(change(0, NODE), results.append)
        owner.run(lambda: results)
        assert results == [AlterPartitionResult(Error.INELIGIBLE_REPLICA)]

    def test_a_partition_without_a_result_is_sent_again(
        self, node: StubNode, port: RemoteAlterPartition, owner: Owner
    ) -> None:
        node.answers[ApiKey.ALTER_PARTITION] = lambda request, _: (
            altered(request) if len(node.of(ApiKey.ALTER_PARTITION)) > 1 else AlterPartitionResponse()
        )
        results: list[AlterPartitionResult] = []
        port.submit(change(0, NODE), results.append)
        owner.run(lambda: results)
        assert [each.error for each in results] == [Error.NONE]


def assigned(
    request: AssignReplicasToDirsRequest, error_of: Callable[[int], Error] = lambda partition: Error.NONE
) -> AssignReplicasToDirsResponse:
    response = AssignReplicasToDirsResponse
    return response(
        directories=[
            response.DirectoryData(
                id=directory.id,
                topics=[
                    response.TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            response.PartitionData(
                                partition_index=each.partition_index, error_code=error_of(each.partition_index)
                            )
                            for each in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )


class TestDirectoryAssignments:
    @pytest.fixture
    def port(self, thread: NodeThread, channel: ControllerChannel) -> RemoteDirectoryAssignments:
        return RemoteDirectoryAssignments(thread, channel, NODE, lambda: EPOCH)

    def test_replicas_are_reported_by_directory_and_topic(
        self, node: StubNode, port: RemoteDirectoryAssignments
    ) -> None:
        node.answers[ApiKey.ASSIGN_REPLICAS_TO_DIRS] = lambda request, _: assigned(request)
        first, second = bytes([1] * 16), bytes([2] * 16)
        port.assign({(TOPIC_ID, 0): first, (TOPIC_ID, 1): second, (TOPIC_ID, 2): first}).result(WAIT_S)
        [request] = node.of(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
        assert (request.broker_id, request.broker_epoch) == (NODE, EPOCH)
        assert {
            (each.id, topic.topic_id): [partition.partition_index for partition in topic.partitions]
            for each in request.directories
            for topic in each.topics
        } == {(first, TOPIC_ID): [0, 2], (second, TOPIC_ID): [1]}
        port.assign({}).result(0)

    def test_a_request_has_a_limited_number_of_replicas(self, node: StubNode, port: RemoteDirectoryAssignments) -> None:
        node.answers[ApiKey.ASSIGN_REPLICAS_TO_DIRS] = lambda request, _: assigned(request)
        count = 2 * MAX_ASSIGNMENTS_PER_REQUEST + 1
        port.assign({(TOPIC_ID, partition): bytes([1] * 16) for partition in range(count)}).result(WAIT_S)
        sizes = [
            len(request.directories[0].topics[0].partitions) for request in node.of(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
        ]
        assert sizes == [MAX_ASSIGNMENTS_PER_REQUEST, MAX_ASSIGNMENTS_PER_REQUEST, 1]

    def test_failures_are_repeated_and_replicas_that_are_gone_are_not(
        self, node: StubNode, port: RemoteDirectoryAssignments
    ) -> None:
        def answer(request: AssignReplicasToDirsRequest, _: int) -> AssignReplicasToDirsResponse:
            count = len(node.of(ApiKey.ASSIGN_REPLICAS_TO_DIRS))
            if count == 1:
                return AssignReplicasToDirsResponse(error_code=Error.STALE_BROKER_EPOCH)
            if count == 2:
                return assigned(
                    request, lambda at: Error.UNKNOWN_TOPIC_OR_PARTITION if at else Error.KAFKA_STORAGE_ERROR
                )
            return assigned(request)

        node.answers[ApiKey.ASSIGN_REPLICAS_TO_DIRS] = answer
        done = [port.assign({(TOPIC_ID, partition): bytes([1] * 16)}) for partition in range(2)]
        for each in done:
            each.result(WAIT_S)
        last = node.of(ApiKey.ASSIGN_REPLICAS_TO_DIRS)[-1]
        assert [each.partition_index for each in last.directories[0].topics[0].partitions] == [0]

    def test_after_the_end_of_the_thread_nothing_is_assigned(
        self, thread: NodeThread, port: RemoteDirectoryAssignments
    ) -> None:
        thread.stop()
        assert port.assign({(TOPIC_ID, 0): bytes(16)}).exception(0) is not None


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (AllocateProducerIdsResponse(producer_id_start=3000, producer_id_len=1000), ProducerIdsBlock(3000, 1000)),
        (AllocateProducerIdsResponse(error_code=Error.STALE_BROKER_EPOCH), Error.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_a_block_of_producer_ids_or_an_error_that_producers_retry_reaches_the_owner(
    node: StubNode,
    channel: ControllerChannel,
    owner: Owner,
    response: AllocateProducerIdsResponse,
    expected: ProducerIdsBlock | Error,
) -> None:
    node.answers[ApiKey.ALLOCATE_PRODUCER_IDS] = lambda request, version: response
    blocks: list[ProducerIdsBlock | Error] = []
    blocks_from_remote_controller(channel, owner.post, NODE, lambda: EPOCH)(blocks.append)
    owner.run(lambda: blocks)
    assert blocks == [expected]
    [request] = node.of(ApiKey.ALLOCATE_PRODUCER_IDS)
    assert (request.broker_id, request.broker_epoch) == (NODE, EPOCH)


def test_the_channels_of_a_node_do_not_wait_for_each_other(thread: NodeThread, node: StubNode) -> None:
    config = BrokerConfig(CONFIG)
    channels = ControllerChannels.open(config, thread, lambda: Destination(2, "127.0.0.1", node.port))
    node.answers[ApiKey.ALLOCATE_PRODUCER_IDS] = lambda request, version: (
        None if request.broker_id == 0 else AllocateProducerIdsResponse()
    )
    done: Queue[int] = Queue()
    for number, channel in enumerate(channels):
        blocks = blocks_from_remote_controller(channel, lambda work: work(), number, lambda: 0)
        blocks(partial(lambda at, block: done.put(at), number))
    assert {done.get(timeout=WAIT_S) for _ in range(3)} == {1, 2, 3}
    channels.controller_changed()
    thread.stop()
    assert done.get(timeout=WAIT_S) == 0
