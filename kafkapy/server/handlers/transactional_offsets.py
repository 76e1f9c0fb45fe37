"""TxnOffsetCommit 0-5: commits a group's offsets in its producer's transaction (KIP-98, KIP-447).

The transaction is verified first; from version 5 on the broker adds the group's partition of `__consumer_offsets` to
the transaction itself.

Versions:
    2   has the error COORDINATOR_LOAD_IN_PROGRESS, instead of COORDINATOR_NOT_AVAILABLE (KAFKA-7296).
    3   names the member and the generation.
    4   has the error TRANSACTION_ABORTABLE.
Permissions: Write on the transactional id, Read on the group and the topic.
The request names topics; it has no topic ids in any version.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from kafkapy.coordinator.group.offset_requests import CommitCall, OffsetToCommit
from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_group, check_transactional_id, denied_topics
from kafkapy.server.request_context import RequestContext
from kafkapy.server.transaction_verification import ClientSupport
from kafkapy.types import ZERO_UUID, TopicPartition


def txn_offset_commit_error(
    request: TxnOffsetCommitRequest, version: int, error: Error, message: str | None
) -> TxnOffsetCommitResponse:
    return _response(request, itertools.repeat(error))


@serves(ApiKey.TXN_OFFSET_COMMIT, 0, 5, on_error=txn_offset_commit_error)
def handle_txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | None:
    check_transactional_id(context, Operation.WRITE, request.transactional_id)
    check_group(context, Operation.READ, request.group_id)
    if not request.group_id:
        return txn_offset_commit_error(request, context.api_version, Error.INVALID_GROUP_ID, None)
    services = context.services
    offsets: list[OffsetToCommit] = []
    # One error for each requested partition, in order; None where the coordinator decides.
    denied = denied_topics(context, Operation.READ, (topic.name for topic in request.topics))
    errors = [
        Error.TOPIC_AUTHORIZATION_FAILED
        if topic.name in denied
        else _to_commit(context, topic.name, requested, offsets)
        for topic in request.topics
        for requested in topic.partitions
    ]

    def respond(decided: list[Error]) -> None:
        rest = iter([_as_known_to(context.api_version, error) for error in decided])
        context.respond(_response(request, (next(rest) if error is None else error for error in errors)))

    if not offsets:
        respond([])
        return None
    call = CommitCall(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id, -1, True, offsets
    )
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    partition = TopicPartition(GROUP_METADATA_TOPIC, services.group_coordinator.partition_for(request.group_id))

    def verified(results: Mapping[TopicPartition, Error]) -> None:
        error = results[partition]
        if error:
            error = Error.COORDINATOR_NOT_AVAILABLE if error is Error.NOT_ENOUGH_REPLICAS else error
            respond([error] * len(offsets))
        else:
            services.group_coordinator.commit_transactional_offsets(call, producer, respond)

    support = _support(context.api_version)
    services.transaction_verification.check(request.transactional_id, producer, (partition,), support, verified)
    return None


def _to_commit(
    context: RequestContext,
    topic: str,
    requested: TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition,
    offsets: list[OffsetToCommit],
) -> Error | None:
    """Adds the partition's offset to `offsets` and returns None if the partition exists; otherwise returns the
    error."""
    if context.services.metadata.image.topics.partition(topic, requested.partition_index) is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    offsets.append(
        OffsetToCommit(
            topic,
            ZERO_UUID,  # The request has no topic ids.
            requested.partition_index,
            requested.committed_offset,
            requested.committed_leader_epoch,
            requested.committed_metadata or "",
        )
    )
    return None


def _support(version: int) -> ClientSupport:
    if version >= TxnOffsetCommitRequest.FIRST_VERSION_WITH_IMPLICIT_PARTITIONS:
        return ClientSupport.ADD_PARTITIONS
    return (
        ClientSupport.VERIFY_ABORTABLE
        if version >= TxnOffsetCommitRequest.FIRST_VERSION_WITH_ABORTABLE_ERRORS
        else ClientSupport.VERIFY
    )


def _as_known_to(version: int, error: Error) -> Error:
    if (
        version < TxnOffsetCommitRequest.FIRST_VERSION_WITH_COORDINATOR_LOADING
        and error is Error.COORDINATOR_LOAD_IN_PROGRESS
    ):
        return Error.COORDINATOR_NOT_AVAILABLE
    return error


def _response(request: TxnOffsetCommitRequest, errors: Iterable[Error]) -> TxnOffsetCommitResponse:
    """Builds the response; `errors` has one error for each requested partition, in order."""
    each = iter(errors)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=requested.partition_index, error_code=next(each)
                    )
                    for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
