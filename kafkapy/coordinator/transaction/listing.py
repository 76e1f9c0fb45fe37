"""The responses of DescribeTransactions and ListTransactions, for administrators (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.coordinator.group.topic_pattern import PatternError, TopicPattern
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_requests import ListFilter
from kafkapy.coordinator.transaction.transaction_state import STATES_BY_TITLE
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsResponse
from kafkapy.protocol.messages.list_transactions import ListTransactionsResponse
from kafkapy.types import by_topic


def described(transactional_id: str, found: TransactionMetadata) -> DescribeTransactionsResponse.TransactionState:
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(sorted(found.partitions)).items()
        ],
    )


def listed(
    transactions: Iterable[tuple[str, TransactionMetadata]], wanted: ListFilter, wall_ms: int
) -> ListTransactionsResponse:
    """Returns the ListTransactions response with the transactions that match the filter `wanted` by state, producer id
    and duration at the time `wall_ms`. Does not filter by transactional id.

    `transactions` are pairs (transactional id, metadata).
    """
    known = {STATES_BY_TITLE[title] for title in wanted.states if title in STATES_BY_TITLE}
    unknown = sorted(title for title in wanted.states if title not in STATES_BY_TITLE)
    found = []
    for transactional_id, metadata in transactions:
        if wanted.states and metadata.state not in known:
            continue
        if wanted.producer_ids and metadata.producer_id not in wanted.producer_ids:
            continue
        if wanted.duration_ms >= 0 and wall_ms - metadata.start_ms <= wanted.duration_ms:
            continue
        found.append(
            ListTransactionsResponse.TransactionState(
                transactional_id=transactional_id,
                producer_id=metadata.producer_id,
                transaction_state=metadata.state.title,
            )
        )
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def keep_matching(response: ListTransactionsResponse, expression: str) -> None:
    """Removes from `response` the transactions whose transactional id as a whole does not match the expression.

    Any thread may call this function, because the matching may take long. Raises ApiError INVALID_REGULAR_EXPRESSION if
    the expression is invalid or too expensive to match.
    """
    found = response.transaction_states
    try:
        pattern = TopicPattern(expression)
        response.transaction_states = [each for each in found if pattern.matches(each.transactional_id)]
    except PatternError as error:
        raise ApiError(Error.INVALID_REGULAR_EXPRESSION) from error
