"""Requests to share coordinators on other brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kafkapy.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kafkapy.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from kafkapy.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from kafkapy.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from kafkapy.replica.share.persister import (
    OnDone,
    OnState,
    OnSummary,
    PersistedState,
    SharePartitionKey,
    StateSummary,
    StateWrite,
    batch_entries,
    batches_from,
)
from kafkapy.server.broker_requests import BrokerRequests


class RemoteShareStates:
    """Sends one request to another broker for each operation on the state of a share partition.

    Only the reactor's thread may use it; implements RemoteShareCoordinators.
    """

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests

    def initialize(
        self, broker_id: int, key: SharePartitionKey, state_epoch: int, start_offset: int, on_done: OnDone
    ) -> None:
        kind = InitializeShareGroupStateRequest
        asked = kind.PartitionData(partition=key.partition, state_epoch=state_epoch, start_offset=start_offset)
        topic = kind.InitializeStateData(topic_id=key.topic_id, partitions=[asked])
        request = kind(group_id=key.group_id, topics=[topic])
        self._send(broker_id, request, ApiKey.INITIALIZE_SHARE_GROUP_STATE, _done(on_done))

    def read(self, broker_id: int, key: SharePartitionKey, leader_epoch: int, on_state: OnState) -> None:
        kind = ReadShareGroupStateRequest
        asked = kind.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
        topic = kind.ReadStateData(topic_id=key.topic_id, partitions=[asked])

        def found(result: Any, error: Error) -> None:
            on_state(None if result is None else _state(result), error)

        request = kind(group_id=key.group_id, topics=[topic])
        self._send(broker_id, request, ApiKey.READ_SHARE_GROUP_STATE, found)

    def write(self, broker_id: int, key: SharePartitionKey, change: StateWrite, on_done: OnDone) -> None:
        kind = WriteShareGroupStateRequest
        asked = kind.PartitionData(
            partition=key.partition,
            state_epoch=change.state_epoch,
            leader_epoch=change.leader_epoch,
            start_offset=change.start_offset,
            delivery_complete_count=change.delivery_complete_count,
            state_batches=batch_entries(kind, change.batches),
        )
        topic = kind.WriteStateData(topic_id=key.topic_id, partitions=[asked])
        request = kind(group_id=key.group_id, topics=[topic])
        self._send(broker_id, request, ApiKey.WRITE_SHARE_GROUP_STATE, _done(on_done))

    def delete(self, broker_id: int, key: SharePartitionKey, on_done: OnDone) -> None:
        kind = DeleteShareGroupStateRequest
        asked = kind.PartitionData(partition=key.partition)
        topic = kind.DeleteStateData(topic_id=key.topic_id, partitions=[asked])
        request = kind(group_id=key.group_id, topics=[topic])
        self._send(broker_id, request, ApiKey.DELETE_SHARE_GROUP_STATE, _done(on_done))

    def summarize(self, broker_id: int, key: SharePartitionKey, on_summary: OnSummary) -> None:
        kind = ReadShareGroupStateSummaryRequest
        asked = kind.PartitionData(partition=key.partition, leader_epoch=-1)
        topic = kind.ReadStateSummaryData(topic_id=key.topic_id, partitions=[asked])

        def found(result: Any, error: Error) -> None:
            on_summary(None if result is None else _summary(result), error)

        request = kind(group_id=key.group_id, topics=[topic])
        self._send(broker_id, request, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, found)

    def _send(self, broker_id: int, request: Message, key: ApiKey, on_result: Callable[[Any, Error], None]) -> None:
        """Sends a request about one share partition to a broker.

        Calls `on_result` with the partition's entry in the response and NONE, or with None and the error.
        """

        def answered(response: Any, error: Error) -> None:
            if response is None:
                on_result(None, error)
                return
            results = [each for topic in response.results for each in topic.partitions]
            if len(results) != 1:
                on_result(None, Error.UNKNOWN_SERVER_ERROR)
                return
            failure = Error.of(results[0].error_code)
            on_result(None if failure else results[0], failure)

        self._requests.send(broker_id, request, key, answered)


def _done(on_done: OnDone) -> Callable[[Any, Error], None]:
    return lambda result, error: on_done(error, None)


def _state(result: Any) -> PersistedState:
    return PersistedState(result.state_epoch, result.start_offset, batches_from(result.state_batches))


def _summary(result: Any) -> StateSummary:
    return StateSummary(result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count)
