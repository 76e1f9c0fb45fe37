"""The interfaces (ports) through which a broker in a cluster of several nodes sends requests to the active controller.

The active controller may be this node itself; requests then arrive at its own listener. A broker whose cluster has only
one node uses direct calls instead (`controller_ports`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future

from kafkapy._core.bytes.message import Message
from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.config import BrokerConfig
from kafkapy.controller.producer_ids import ProducerIdsBlock
from kafkapy.coordinator.producer_id_manager import AllocateBlock, OnBlock
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.nodes.controller_channel import ControllerChannel, FindController
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kafkapy.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kafkapy.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.alter_partition import AlterPartitionResult, IsrChange

logger = logging.getLogger("kafka.server.NodeToControllerChannelManager")

FORWARDING_TIMEOUT_MS = 60_000
ASSIGNMENT_TIMEOUT_MS = 60_000
ISR_RETRY_MS = 50
MAX_ASSIGNMENTS_PER_REQUEST = 2250
ASSIGNMENT_BACKOFF_MS = 10
MAX_ASSIGNMENT_BACKOFF_MS = 10_000
# Errors of an assignment that is recorded, or whose replica the controller no longer has.
_FINAL = frozenset({Error.NONE, Error.UNKNOWN_TOPIC_ID, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_LEADER_OR_FOLLOWER})

Post = Callable[[Callable[[], None]], object]
OnResult = Callable[[AlterPartitionResult], None]
# (topic id, partition)
ReplicaKey = tuple[bytes, int]


class ControllerChannels(NamedTuple):
    """The channels of a node to the active controller, one for each purpose, so that a slow request delays only
    requests for the same purpose. The object does not change after its construction.
    """

    forwarding: ControllerChannel
    heartbeats: ControllerChannel
    alter_partition: ControllerChannel
    directories: ControllerChannel

    @classmethod
    def open(cls, config: BrokerConfig, thread: NodeThread, find_controller: FindController) -> ControllerChannels:
        """Creates the channels. Each channel connects at its first use, to the address that
        `find_controller` returns."""

        def channel(name: str, retry_timeout_ms: int | None) -> ControllerChannel:
            return ControllerChannel(
                thread,
                find_controller,
                client_id=f"broker-{config.node_id}-{name}",
                request_timeout_ms=config.controller_socket_timeout_ms,
                retry_timeout_ms=retry_timeout_ms,
            )

        return cls(
            channel("forwarding", FORWARDING_TIMEOUT_MS),
            channel("heartbeat", config.broker_session_timeout_ms),
            channel("alter-partition", None),
            channel("directory-assignments", ASSIGNMENT_TIMEOUT_MS),
        )

    def controller_changed(self) -> None:
        """Makes all channels look up the active controller again. Any thread may call it."""
        for each in self:
            each.controller_changed()


class RemoteAlterPartition:
    """Sends changes of ISRs to the active controller (AlterPartition). Only the reactor's thread may use it. Implements
    AlterPartitionPort.

    Only one request is in flight; changes that are submitted before its response are sent together in the next one. If
    a whole request fails, it is not known whether the changes were made, so that they are sent again, without a limit.
    """

    def __init__(
        self,
        channel: ControllerChannel,
        node_id: int,
        broker_epoch: Callable[[], int],
        post: Post,
        schedule: Schedule,
    ) -> None:
        """`post(work)` runs work on the reactor's thread soon, `schedule(delay_ms, work)` after a delay.

        `node_id` and the result of `broker_epoch()` identify this broker in the requests.
        """
        self._channel = channel
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._post = post
        self._schedule = schedule
        self._unsent: dict[ReplicaKey, tuple[IsrChange, OnResult]] = {}
        self._is_in_flight = False

    def submit(self, change: IsrChange, on_result: OnResult) -> None:
        """Sends a change with the next request. An unsent change of the same partition is replaced and gets the result
        OPERATION_NOT_ATTEMPTED."""
        key = (change.topic_id, change.topic_partition.partition)
        replaced = self._unsent.pop(key, None)
        self._unsent[key] = (change, on_result)
        if replaced is not None:
            _, on_replaced = replaced
            self._post(lambda: on_replaced(AlterPartitionResult(Error.OPERATION_NOT_ATTEMPTED)))
        self._send()

    def _send(self) -> None:
        if self._is_in_flight or not self._unsent:
            return
        self._is_in_flight = True
        sent, self._unsent = self._unsent, {}
        changes = [change for change, _ in sent.values()]

        def build(version: int) -> Message:
            return _alter_partition_request(self._node_id, self._broker_epoch(), changes, version)

        def done(response: AlterPartitionResponse | None, version: int, error: Exception | None) -> None:
            self._post(lambda: self._finish(sent, response, error))

        self._channel.send(build, ApiKey.ALTER_PARTITION, done)

    def _finish(
        self,
        sent: dict[ReplicaKey, tuple[IsrChange, OnResult]],
        response: AlterPartitionResponse | None,
        error: Exception | None,
    ) -> None:
        if response is None or response.error_code:
            shown = error if response is None else Error.of(response.error_code).name
            logger.warning("AlterPartition for %d partitions failed: %s; trying again", len(sent), shown)
            self._schedule(ISR_RETRY_MS, lambda: self._retry(sent))
            return
        for topic in response.topics:
            for each in topic.partitions:
                found = sent.pop((topic.topic_id, each.partition_index), None)
                if found is not None:
                    _report(found[1], _result(each))
        if sent:  # partitions without a result
            self._schedule(ISR_RETRY_MS, lambda: self._retry(sent))
        else:
            self._retry(sent)

    def _retry(self, sent: dict[ReplicaKey, tuple[IsrChange, OnResult]]) -> None:
        """Sends the changes again, except those of partitions for which newer changes have been submitted."""
        for key, (change, on_result) in sent.items():
            if key in self._unsent:
                _report(on_result, AlterPartitionResult(Error.OPERATION_NOT_ATTEMPTED))
            else:
                self._unsent[key] = (change, on_result)
        self._is_in_flight = False
        self._send()


def _alter_partition_request(
    node_id: int, broker_epoch: int, changes: list[IsrChange], version: int
) -> AlterPartitionRequest:
    topics: dict[bytes, AlterPartitionRequest.TopicData] = {}
    for change in changes:
        topic = topics.get(change.topic_id)
        if topic is None:
            topic = topics[change.topic_id] = AlterPartitionRequest.TopicData(topic_id=change.topic_id, partitions=[])
        partition = AlterPartitionRequest.PartitionData(
            partition_index=change.topic_partition.partition,
            leader_epoch=change.leader_epoch,
            leader_recovery_state=change.leader_recovery_state,
            partition_epoch=change.partition_epoch,
        )
        if version >= AlterPartitionRequest.FIRST_VERSION_WITH_NEW_ISR_WITH_EPOCHS:
            epochs = change.broker_epochs or (-1,) * len(change.new_isr)
            partition.new_isr_with_epochs = [
                AlterPartitionRequest.BrokerState(
                    broker_id=replica, broker_epoch=broker_epoch if replica == node_id else epoch
                )
                for replica, epoch in zip(change.new_isr, epochs, strict=True)
            ]
        else:
            partition.new_isr = list(change.new_isr)
        topic.partitions.append(partition)
    return AlterPartitionRequest(broker_id=node_id, broker_epoch=broker_epoch, topics=list(topics.values()))


def _report(on_result: OnResult, result: AlterPartitionResult) -> None:
    """Calls `on_result`. Logs an exception, which must not keep the results of other partitions and the next request
    from being handled."""
    try:
        on_result(result)
    except Exception:
        logger.exception("The result of an AlterPartition request could not be handled")


def _result(partition: AlterPartitionResponse.PartitionData) -> AlterPartitionResult:
    if partition.error_code:
        return AlterPartitionResult(Error.of(partition.error_code))
    return AlterPartitionResult(
        Error.NONE, partition.leader_id, partition.leader_epoch, tuple(partition.isr), partition.partition_epoch
    )


class RemoteDirectoryAssignments:
    """Reports the log directories of replicas to the controller (KIP-858). `assign` may be called from any thread.

    Only one request is in flight, with at most MAX_ASSIGNMENTS_PER_REQUEST replicas. A replica is reported again until
    the controller has recorded its directory or has no such replica.
    """

    def __init__(
        self, thread: NodeThread, channel: ControllerChannel, node_id: int, broker_epoch: Callable[[], int]
    ) -> None:
        self._thread = thread
        self._channel = channel
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._backoff = ExponentialBackoff(ASSIGNMENT_BACKOFF_MS, MAX_ASSIGNMENT_BACKOFF_MS)
        self._wanted: dict[ReplicaKey, bytes] = {}  # -> directory id
        self._waiting: list[tuple[set[ReplicaKey], Future[None]]] = []
        self._is_busy = False  # a request is in flight, or the next one waits
        self._failures = 0

    def assign(self, found: Mapping[ReplicaKey, bytes]) -> Future[None]:
        """Reports directories of replicas: `found` maps (topic id, partition) to a directory id.

        The returned Future ends when, for each replica, the controller has recorded the directory or has no such
        replica.
        """
        assigned: Future[None] = Future()
        if not found:
            assigned.set_result(None)
        elif not self._thread.post(lambda: self._add(dict(found), assigned)):
            assigned.set_exception(ApiError(Error.NETWORK_EXCEPTION, "The broker stops."))
        return assigned

    # -- node thread

    def _add(self, found: dict[ReplicaKey, bytes], assigned: Future[None]) -> None:
        self._wanted.update(found)
        self._waiting.append((set(found), assigned))
        if not self._is_busy:
            self._send()

    def _send(self) -> None:
        self._is_busy = bool(self._wanted) and not self._thread.is_stopped
        if not self._is_busy:
            return
        sent = dict(_first(self._wanted, MAX_ASSIGNMENTS_PER_REQUEST))

        def done(response: AssignReplicasToDirsResponse | None, version: int, error: Exception | None) -> None:
            self._finish(sent, response, error)

        request = _assignment_request(self._node_id, self._broker_epoch(), sent)
        self._channel.send(request, ApiKey.ASSIGN_REPLICAS_TO_DIRS, done)

    def _finish(
        self, sent: dict[ReplicaKey, bytes], response: AssignReplicasToDirsResponse | None, error: Exception | None
    ) -> None:
        if response is None or response.error_code:
            shown = error if response is None else Error.of(response.error_code).name
            logger.warning("The directories of %d replicas could not be reported: %s", len(sent), shown)
            ended = set()
        else:
            ended = {key for key, found in _assignment_errors(response) if found in _FINAL}
        for key in ended:
            if self._wanted.get(key) == sent.get(key):
                self._wanted.pop(key, None)
        self._complete()
        self._failures = 0 if ended else self._failures + 1
        if ended:
            self._send()
        else:
            self._thread.schedule(self._backoff.pause_ms(self._failures - 1), self._send)

    def _complete(self) -> None:
        """Ends the futures of the calls of `assign` whose replicas need no further report."""
        waiting, self._waiting = self._waiting, []
        for keys, assigned in waiting:
            keys &= self._wanted.keys()
            if keys:
                self._waiting.append((keys, assigned))
            else:
                assigned.set_result(None)


def _first(wanted: Mapping[ReplicaKey, bytes], count: int) -> Iterator[tuple[ReplicaKey, bytes]]:
    for _, item in zip(range(count), wanted.items(), strict=False):
        yield item


def _assignment_request(
    node_id: int, broker_epoch: int, sent: Mapping[ReplicaKey, bytes]
) -> AssignReplicasToDirsRequest:
    by_directory: dict[bytes, dict[bytes, list[int]]] = {}
    for (topic_id, partition), directory_id in sent.items():
        by_directory.setdefault(directory_id, {}).setdefault(topic_id, []).append(partition)
    return AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=[
            AssignReplicasToDirsRequest.DirectoryData(
                id=directory_id,
                topics=[
                    AssignReplicasToDirsRequest.TopicData(
                        topic_id=topic_id,
                        partitions=[
                            AssignReplicasToDirsRequest.PartitionData(partition_index=each) for each in partitions
                        ],
                    )
                    for topic_id, partitions in topics.items()
                ],
            )
            for directory_id, topics in by_directory.items()
        ],
    )


def _assignment_errors(response: AssignReplicasToDirsResponse) -> Iterator[tuple[ReplicaKey, Error]]:
    for directory in response.directories:
        for topic in directory.topics:
            for each in topic.partitions:
                yield (topic.topic_id, each.partition_index), Error.of(each.error_code)


def blocks_from_remote_controller(
    channel: ControllerChannel, post: Post, node_id: int, broker_epoch: Callable[[], int]
) -> AllocateBlock:
    """Returns a function that requests a block of producer ids and passes it to its callback on the reactor's thread.

    After any failure the callback gets COORDINATOR_LOAD_IN_PROGRESS, so that producers try again.
    """

    def allocate(on_block: OnBlock) -> None:
        def done(response: AllocateProducerIdsResponse | None, version: int, error: Exception | None) -> None:
            failure = error if response is None else Error.of(response.error_code)
            if response is None or failure is not Error.NONE:
                logger.warning("The controller allocated no producer ids: %s", failure)
                post(lambda: on_block(Error.COORDINATOR_LOAD_IN_PROGRESS))
                return
            block = ProducerIdsBlock(response.producer_id_start, response.producer_id_len)
            post(lambda: on_block(block))

        def build(version: int) -> Message:
            return AllocateProducerIdsRequest(broker_id=node_id, broker_epoch=broker_epoch())

        channel.send(build, ApiKey.ALLOCATE_PRODUCER_IDS, done)

    return allocate
