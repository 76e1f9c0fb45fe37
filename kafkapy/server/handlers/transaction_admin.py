"""DescribeTransactions 0, ListTransactions 0-2 and DescribeProducers 0: transactions for administrators (KIP-664).

Versions:
    ListTransactions 1   filters by duration.
    ListTransactions 2   filters by a pattern, which is matched on a thread of the handler pool.
Permissions: Describe on the transactional id, and on each topic of it that is shown; Read on the topic for
DescribeProducers. Transactions and topics that the client may not describe are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkapy.controller.topic_name import is_valid_topic_name, validate_topic_name
from kafkapy.coordinator.transaction.listing import described, keep_matching, listed
from kafkapy.coordinator.transaction.transaction_requests import ListFilter
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kafkapy.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_transactional_id, denied_names, denied_topics
from kafkapy.server.handler_call import submit_part
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition


def describe_transactions_error(
    request: DescribeTransactionsRequest, version: int, error: Error, message: str | None
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            DescribeTransactionsResponse.TransactionState(error_code=error, transactional_id=transactional_id)
            for transactional_id in request.transactional_ids
        ]
    )


@serves(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, on_error=describe_transactions_error)
def handle_describe_transactions(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_described(context, transactional_id) for transactional_id in request.transactional_ids]
    )


def _described(context: RequestContext, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
    try:
        check_transactional_id(context, Operation.DESCRIBE, transactional_id)
        state = described(transactional_id, context.services.transaction_coordinator.find(transactional_id))
    except ApiError as error:
        return DescribeTransactionsResponse.TransactionState(error_code=error.error, transactional_id=transactional_id)
    denied = denied_topics(context, Operation.DESCRIBE, (topic.topic for topic in state.topics))
    if denied:
        state.topics = [topic for topic in state.topics if topic.topic not in denied]
    return state


def list_transactions_error(
    request: ListTransactionsRequest, version: int, error: Error, message: str | None
) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error)


@serves(ApiKey.LIST_TRANSACTIONS, 0, 2, on_error=list_transactions_error)
def handle_list_transactions(
    context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse | None:
    """Lists transactions. The pattern in the request is matched on the handler pool, because matching may take long."""
    wanted = ListFilter(
        frozenset(request.state_filters), frozenset(request.producer_id_filters), request.duration_filter
    )
    services = context.services
    response = listed(services.transaction_coordinator.transactions(), wanted, services.clock.wall_ms())
    pattern = request.transactional_id_pattern
    if not pattern:
        _leave_out_denied(context, response)
        return response

    def work() -> Callable[[], object]:
        keep_matching(response, pattern)
        _leave_out_denied(context, response)
        return partial(context.respond, response)

    submit_part(handle_list_transactions, context, request, work)
    return None


def _leave_out_denied(context: RequestContext, response: ListTransactionsResponse) -> None:
    """Removes the transactions that the client may not describe from the response."""
    states = response.transaction_states
    names = (state.transactional_id for state in states)
    denied = denied_names(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, names)
    if denied:
        response.transaction_states = [state for state in states if state.transactional_id not in denied]


def describe_producers_error(
    request: DescribeProducersRequest, version: int, error: Error, message: str | None
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    DescribeProducersResponse.PartitionResponse(partition_index=index, error_code=error)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


@serves(ApiKey.DESCRIBE_PRODUCERS, 0, 0, on_error=describe_producers_error)
def handle_describe_producers(context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    valid_names = (topic.name for topic in request.topics if is_valid_topic_name(topic.name))
    denied = denied_topics(context, Operation.READ, valid_names)
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    _denied_partition(index)
                    if topic.name in denied
                    else _producers_of(context, TopicPartition(topic.name, index))
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _denied_partition(index: int) -> DescribeProducersResponse.PartitionResponse:
    error = Error.TOPIC_AUTHORIZATION_FAILED
    return DescribeProducersResponse.PartitionResponse(
        partition_index=index, error_code=error, error_message=error.message
    )


def _producers_of(
    context: RequestContext, topic_partition: TopicPartition
) -> DescribeProducersResponse.PartitionResponse:
    response = DescribeProducersResponse.PartitionResponse(partition_index=topic_partition.partition)
    try:
        validate_topic_name(topic_partition.topic)
    except ApiError as error:
        response.error_code, response.error_message = error.error, error.message
        return response
    try:
        partition = context.services.replica_manager.get_partition(topic_partition)
    except ApiError as error:
        response.error_code = error.error
        if topic_partition.topic not in context.services.metadata.image.topics.by_name:
            # Apache Kafka sends a message for a missing topic, but not for a missing partition.
            response.error_message = error.message
        return response
    if not partition.is_leader:
        response.error_code = Error.NOT_LEADER_OR_FOLLOWER
        return response
    response.active_producers = [
        DescribeProducersResponse.ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_first_offset,
        )
        for entry in partition.log.producers.entries.values()
    ]
    return response
