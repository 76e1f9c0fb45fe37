"""InitializeShareGroupState 0, ReadShareGroupState 0, WriteShareGroupState 0-1, DeleteShareGroupState 0 and
ReadShareGroupStateSummary 0-1: the states of share partitions at their coordinator (KIP-932).

Only other brokers send these requests.

Permissions: ClusterAction on the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.coordinator.runtime import ErrorResponder
from kafkapy.coordinator.share.share_coordinator import ShareCoordinator
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
    StateWrite,
    batch_entries,
    batches_from,
)
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.request_context import RequestContext

# Reports the success of an operation, with the fields of its result.
Succeed = Callable[..., None]
# Runs an operation: (coordinator, share partition, its entry in the request, on success, on error). Calls one of the
# callbacks; an operation whose result has no fields calls the second one with NONE.
Operate = Callable[[ShareCoordinator, SharePartitionKey, Any, Succeed, ErrorResponder], None]


class _StateApi:
    """One of the APIs of share group state, whose responses have one result for each share partition."""

    def __init__(self, response_class: Any, topic_class: Any) -> None:
        self._response_class = response_class
        self._topic_class = topic_class

    def failed(self, request: Any, version: int, error: Error, message: str | None) -> Any:
        """Returns the response to a request that failed as a whole: every partition of the request has the error."""
        topics = {
            topic.topic_id: [self._failed(each.partition, error, message) for each in topic.partitions]
            for topic in request.topics
        }
        return self._response(topics)

    def serve(self, context: RequestContext, request: Any, operate: Operate) -> None:
        """Calls `operate` for every partition of the request, and responds when all of these operations have ended.

        `operate` gets the share coordinator, the key of the share partition, the partition's entry in the request, and
        two functions, of which it calls one: with the fields of the result, or with an error and its message.
        """
        check_cluster(context, Operation.CLUSTER_ACTION)
        entries = [(topic.topic_id, each) for topic in request.topics for each in topic.partitions]
        if not request.group_id or not entries:
            context.respond(self._response({}))
            return
        topics: dict[bytes, list[Any]] = {topic_id: [] for topic_id, _ in entries}
        remaining = len(entries)

        def done(topic_id: bytes, result: Any) -> None:
            nonlocal remaining
            topics[topic_id].append(result)
            remaining -= 1
            if not remaining:
                context.respond(self._response(topics))

        def start(key: SharePartitionKey, partition: Any) -> None:
            def succeed(**fields: Any) -> None:
                done(key.topic_id, self._response_class.PartitionResult(partition=key.partition, **fields))

            def ended(error: Error, message: str | None) -> None:
                done(key.topic_id, self._failed(key.partition, error, message))

            operate(context.services.shares.coordinator, key, partition, succeed, ended)

        for topic_id, each in entries:
            start(SharePartitionKey(request.group_id, topic_id, each.partition), each)

    def _failed(self, partition: int, error: Error, message: str | None) -> Any:
        """Returns the result of a partition that has only an error and its message.

        `error` is NONE if the operation succeeded and its result has no further fields.
        """
        text = message or error.message if error else None
        return self._response_class.PartitionResult(partition=partition, error_code=error, error_message=text)

    def _response(self, topics: dict[bytes, list[Any]]) -> Any:
        return self._response_class(
            results=[
                self._topic_class(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()
            ]
        )


_INITIALIZE = _StateApi(InitializeShareGroupStateResponse, InitializeShareGroupStateResponse.InitializeStateResult)
_READ = _StateApi(ReadShareGroupStateResponse, ReadShareGroupStateResponse.ReadStateResult)
_WRITE = _StateApi(WriteShareGroupStateResponse, WriteShareGroupStateResponse.WriteStateResult)
_DELETE = _StateApi(DeleteShareGroupStateResponse, DeleteShareGroupStateResponse.DeleteStateResult)
_SUMMARY = _StateApi(ReadShareGroupStateSummaryResponse, ReadShareGroupStateSummaryResponse.ReadStateSummaryResult)


@serves(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, on_error=_INITIALIZE.failed)
def handle_initialize(context: RequestContext, request: Any) -> None:
    _INITIALIZE.serve(
        context,
        request,
        lambda coordinator, key, entry, succeed, ended: coordinator.initialize(
            key, entry.state_epoch, entry.start_offset, ended
        ),
    )


@serves(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, on_error=_READ.failed)
def handle_read(context: RequestContext, request: Any) -> None:
    def operate(
        coordinator: ShareCoordinator, key: SharePartitionKey, entry: Any, succeed: Succeed, ended: ErrorResponder
    ) -> None:
        def found(state: PersistedState) -> None:
            batches = batch_entries(ReadShareGroupStateResponse, state.batches)
            succeed(state_epoch=state.state_epoch, start_offset=state.start_offset, state_batches=batches)

        coordinator.read(key, entry.leader_epoch, found, ended)

    _READ.serve(context, request, operate)


@serves(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, on_error=_WRITE.failed)
def handle_write(context: RequestContext, request: Any) -> None:
    def operate(
        coordinator: ShareCoordinator, key: SharePartitionKey, entry: Any, succeed: Succeed, ended: ErrorResponder
    ) -> None:
        change = StateWrite(
            entry.state_epoch,
            entry.leader_epoch,
            entry.start_offset,
            entry.delivery_complete_count,
            batches_from(entry.state_batches),
        )
        coordinator.write(key, change, ended)

    _WRITE.serve(context, request, operate)


@serves(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, on_error=_DELETE.failed)
def handle_delete(context: RequestContext, request: Any) -> None:
    _DELETE.serve(context, request, lambda coordinator, key, entry, succeed, ended: coordinator.delete(key, ended))


@serves(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, on_error=_SUMMARY.failed)
def handle_summary(context: RequestContext, request: Any) -> None:
    # The fields of the result are those of the summary.
    _SUMMARY.serve(
        context,
        request,
        lambda coordinator, key, entry, succeed, ended: coordinator.summarize(
            key, lambda summary: succeed(**summary._asdict()), ended
        ),
    )
