"""InitializeShareGroupState 0, ReadShareGroupState 0, WriteShareGroupState 0-1, DeleteShareGroupState 0 and
ReadShareGroupStateSummary 0-1: the states of share partitions at their coordinator (KIP-932).

Only other brokers send these requests.

Permissions: ClusterAction on the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_share_group_state import DeleteShareGroupStateResponse
from kafkapy.protocol.messages.initialize_share_group_state import InitializeShareGroupStateResponse
from kafkapy.protocol.messages.read_share_group_state import ReadShareGroupStateResponse
from kafkapy.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryResponse
from kafkapy.protocol.messages.write_share_group_state import WriteShareGroupStateResponse
from kafkapy.replica.share.persister import (
    PersistedState,
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StateWrite,
)
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import OnError, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.request_context import RequestContext

# Runs an operation: (share partition, its entry in the request, callback for its entry in the response).
Operate = Callable[[SharePartitionKey, Any, Callable[[Any], None]], None]


def _results(response_class: Any, result_class: Any, topics: dict[bytes, list[Any]]) -> Any:
    return response_class(
        results=[result_class(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()]
    )


def _on_error(response_class: Any, result_class: Any) -> OnError:
    """Returns an `on_error` function, which responds with the error for every partition of the request."""

    def failed(request: Any, version: int, error: Error, message: str | None) -> Any:
        topics = {
            topic.topic_id: [
                response_class.PartitionResult(
                    partition=each.partition, error_code=error, error_message=message or error.message
                )
                for each in topic.partitions
            ]
            for topic in request.topics
        }
        return _results(response_class, result_class, topics)

    return failed


def _serve(context: RequestContext, request: Any, response_class: Any, result_class: Any, operate: Operate) -> None:
    """Runs the operation for every partition of the request, and responds when all have ended."""
    check_cluster(context, Operation.CLUSTER_ACTION)
    asked = [(topic.topic_id, each) for topic in request.topics for each in topic.partitions]
    if not request.group_id or not asked:
        context.respond(response_class(results=[]))
        return
    topics: dict[bytes, list[Any]] = {topic_id: [] for topic_id, _ in asked}
    remaining = len(asked)

    def done(topic_id: bytes, result: Any) -> None:
        nonlocal remaining
        topics[topic_id].append(result)
        remaining -= 1
        if not remaining:
            context.respond(_results(response_class, result_class, topics))

    for topic_id, each in asked:
        key = SharePartitionKey(request.group_id, topic_id, each.partition)
        operate(key, each, lambda result, topic_id=topic_id: done(topic_id, result))  # type: ignore[misc]


def _outcome(
    response_class: Any, key: SharePartitionKey, done: Callable[[Any], None]
) -> Callable[[Error, str | None], None]:
    """Returns a callback that ends an operation with its error."""

    def ended(error: Error, message: str | None) -> None:
        text = message or error.message if error else None
        done(response_class.PartitionResult(partition=key.partition, error_code=error, error_message=text))

    return ended


@serves(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0,
    on_error=_on_error(InitializeShareGroupStateResponse, InitializeShareGroupStateResponse.InitializeStateResult),
)  # fmt: skip
def handle_initialize(context: RequestContext, request: Any) -> None:
    response = InitializeShareGroupStateResponse

    def operate(key: SharePartitionKey, asked: Any, done: Callable[[Any], None]) -> None:
        coordinator = context.services.shares.coordinator
        coordinator.initialize(key, asked.state_epoch, asked.start_offset, _outcome(response, key, done))

    _serve(context, request, response, response.InitializeStateResult, operate)


@serves(
    ApiKey.READ_SHARE_GROUP_STATE, 0, 0,
    on_error=_on_error(ReadShareGroupStateResponse, ReadShareGroupStateResponse.ReadStateResult),
)  # fmt: skip
def handle_read(context: RequestContext, request: Any) -> None:
    response = ReadShareGroupStateResponse

    def operate(key: SharePartitionKey, asked: Any, done: Callable[[Any], None]) -> None:
        def found(state: PersistedState) -> None:
            done(
                response.PartitionResult(
                    partition=key.partition,
                    state_epoch=state.state_epoch,
                    start_offset=state.start_offset,
                    state_batches=[
                        response.StateBatch(
                            first_offset=each.first_offset,
                            last_offset=each.last_offset,
                            delivery_state=each.state,
                            delivery_count=each.delivery_count,
                        )
                        for each in state.batches
                    ],
                )
            )

        context.services.shares.coordinator.read(key, asked.leader_epoch, found, _outcome(response, key, done))

    _serve(context, request, response, response.ReadStateResult, operate)


@serves(
    ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1,
    on_error=_on_error(WriteShareGroupStateResponse, WriteShareGroupStateResponse.WriteStateResult),
)  # fmt: skip
def handle_write(context: RequestContext, request: Any) -> None:
    response = WriteShareGroupStateResponse

    def operate(key: SharePartitionKey, asked: Any, done: Callable[[Any], None]) -> None:
        change = StateWrite(
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            [
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in asked.state_batches
            ],
        )
        context.services.shares.coordinator.write(key, change, _outcome(response, key, done))

    _serve(context, request, response, response.WriteStateResult, operate)


@serves(
    ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0,
    on_error=_on_error(DeleteShareGroupStateResponse, DeleteShareGroupStateResponse.DeleteStateResult),
)  # fmt: skip
def handle_delete(context: RequestContext, request: Any) -> None:
    response = DeleteShareGroupStateResponse

    def operate(key: SharePartitionKey, asked: Any, done: Callable[[Any], None]) -> None:
        context.services.shares.coordinator.delete(key, _outcome(response, key, done))

    _serve(context, request, response, response.DeleteStateResult, operate)


@serves(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1,
    on_error=_on_error(
        ReadShareGroupStateSummaryResponse, ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
    ),
)  # fmt: skip
def handle_summary(context: RequestContext, request: Any) -> None:
    response = ReadShareGroupStateSummaryResponse

    def operate(key: SharePartitionKey, asked: Any, done: Callable[[Any], None]) -> None:
        def found(summary: StateSummary) -> None:
            done(
                response.PartitionResult(
                    partition=key.partition,
                    state_epoch=summary.state_epoch,
                    leader_epoch=summary.leader_epoch,
                    start_offset=summary.start_offset,
                    delivery_complete_count=summary.delivery_complete_count,
                )
            )

        context.services.shares.coordinator.summarize(key, found, _outcome(response, key, done))

    _serve(context, request, response, response.ReadStateSummaryResult, operate)
