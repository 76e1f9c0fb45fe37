"""AddPartitionsToTxn 0-5, AddOffsetsToTxn 0-4, EndTxn 0-5, and WriteTxnMarkers 1-2 between brokers.

If one partition of a request cannot be added to a transaction, none of the request's partitions is added.

Versions:
    all                      have the error PRODUCER_FENCED from version 2 on, instead of INVALID_PRODUCER_EPOCH.
    AddPartitionsToTxn 4     is sent by brokers: adds to several transactions, or only verifies them.
    EndTxn 5                 the producer takes its next epoch from the response (KIP-890).
Permissions: Write on the transactional id; also Write on the topics for AddPartitionsToTxn before version 4, and
Read on the group for AddOffsetsToTxn. Requests of brokers need ClusterAction on the cluster. For WriteTxnMarkers, with
which administrators abort hanging transactions (KIP-664), Alter on the cluster suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from kafkapy.coordinator.transaction.end_of_transaction import EndRequest
from kafkapy.coordinator.transaction.transaction_metadata import TRANSACTION_VERSION_0, TRANSACTION_VERSION_2
from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch, ProducerResponse, TransactionMarker
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC, INTERNAL_TOPICS
from kafkapy.metadata.topics_image import TopicsImage
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafkapy.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import (
    NO_NAMES,
    check_cluster,
    check_group,
    check_transactional_id,
    denied_topics,
    is_cluster_allowed,
)
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition

_Topics = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
# The errors of a group coordinator that the transaction coordinator handles by looking up the leader again.
_COORDINATOR_MOVED = frozenset(
    {Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR}
)
_TopicResults = list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]


def _in_version(version: int, error: Error, first_with_producer_fenced: int) -> Error:
    """Returns the error; a version before `first_with_producer_fenced` gets INVALID_PRODUCER_EPOCH instead of
    PRODUCER_FENCED."""
    if error is Error.PRODUCER_FENCED and version < first_with_producer_fenced:
        return Error.INVALID_PRODUCER_EPOCH
    return error


# -- AddPartitionsToTxn


def add_partitions_error(
    request: AddPartitionsToTxnRequest, version: int, error: Error, message: str | None
) -> AddPartitionsToTxnResponse:
    if version >= AddPartitionsToTxnRequest.FIRST_VERSION_WITH_TRANSACTIONS:
        return AddPartitionsToTxnResponse(error_code=error)
    requested = _partitions(request.v3_and_below_topics)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(dict.fromkeys(requested, error)))


@serves(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, on_error=add_partitions_error)
def handle_add_partitions_to_txn(context: RequestContext, request: AddPartitionsToTxnRequest) -> None:
    if context.api_version >= AddPartitionsToTxnRequest.FIRST_VERSION_WITH_TRANSACTIONS:
        check_cluster(context, Operation.CLUSTER_ACTION)
        _add_batched(context, request)
        return
    check_transactional_id(context, Operation.WRITE, request.v3_and_below_transactional_id)
    topics = request.v3_and_below_topics
    external = (topic.name for topic in topics if topic.name not in INTERNAL_TOPICS)
    denied = denied_topics(context, Operation.WRITE, external)

    def respond(errors: Mapping[TopicPartition, Error]) -> None:
        first = AddPartitionsToTxnRequest.FIRST_VERSION_WITH_PRODUCER_FENCED
        known = {partition: _in_version(context.api_version, error, first) for partition, error in errors.items()}
        context.respond(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(known)))

    refused = _refused(context.services.metadata.image.topics, topics, denied | INTERNAL_TOPICS)
    if refused:
        respond(refused)
        return
    requested = _partitions(topics)
    context.services.transaction_coordinator.add_partitions(
        request.v3_and_below_transactional_id,
        ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
        frozenset(requested),
        TRANSACTION_VERSION_0,  # clients of version 2 leave it to Produce to add partitions
        lambda error: respond(_each(requested, error)),
    )


def _add_batched(context: RequestContext, request: AddPartitionsToTxnRequest) -> None:
    """Handles version 4 and later, which brokers send for several transactions; responds when all are handled.

    Adds the partitions to each transaction or, if its `verify_only` is set, verifies that they are in it.
    """
    results: dict[int, Mapping[TopicPartition, Error]] = {}

    def done(position: int, errors: Mapping[TopicPartition, Error]) -> None:
        results[position] = errors
        if len(results) == len(request.transactions):
            answer = [
                AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id, topic_results=_results(results[position])
                )
                for position, transaction in enumerate(request.transactions)
            ]
            context.respond(AddPartitionsToTxnResponse(results_by_transaction=answer))

    if not request.transactions:
        context.respond(AddPartitionsToTxnResponse())
    for position, transaction in enumerate(request.transactions):
        _add_to_transaction(context, position, transaction, done)


def _add_to_transaction(
    context: RequestContext,
    position: int,
    transaction: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction,
    done: Callable[[int, Mapping[TopicPartition, Error]], None],
) -> None:
    coordinator = context.services.transaction_coordinator
    # Brokers add partitions of __consumer_offsets for TxnOffsetCommit.
    refused = _refused(context.services.metadata.image.topics, transaction.topics, NO_NAMES)
    if refused:
        done(position, refused)
        return
    requested = frozenset(_partitions(transaction.topics))
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        try:
            done(position, coordinator.verify_partitions(transaction.transactional_id, producer, requested))
        except ApiError as error:
            done(position, dict.fromkeys(requested, error.error))
        return
    coordinator.add_partitions(
        transaction.transactional_id,
        producer,
        requested,
        TRANSACTION_VERSION_2,
        lambda error: done(position, _each(requested, error)),
    )


def _each(partitions: Iterable[TopicPartition], error: Error) -> dict[TopicPartition, Error]:
    return dict.fromkeys(partitions, error)


def _partitions(topics: _Topics) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for topic in topics for partition in topic.partitions]


def _refused(known: TopicsImage, topics: _Topics, denied: AbstractSet[str]) -> dict[TopicPartition, Error]:
    """Returns an error for every partition of the request if any of them cannot be added, otherwise {}.

    The client may not write to the topics `denied`. Partitions that could be added get OPERATION_NOT_ATTEMPTED.
    """
    errors: dict[TopicPartition, Error] = {}
    requested = _partitions(topics)
    for partition in requested:
        if partition.topic in denied:
            errors[partition] = Error.TOPIC_AUTHORIZATION_FAILED
        elif known.partition(partition.topic, partition.partition) is None:
            errors[partition] = Error.UNKNOWN_TOPIC_OR_PARTITION
    if errors:
        for partition in requested:
            errors.setdefault(partition, Error.OPERATION_NOT_ATTEMPTED)
    return errors


def _results(errors: Mapping[TopicPartition, Error]) -> _TopicResults:
    by_topic: dict[str, list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]] = {}
    for partition, error in sorted(errors.items()):
        by_topic.setdefault(partition.topic, []).append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                partition_index=partition.partition, partition_error_code=error
            )
        )
    return [
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name=name, results_by_partition=partitions)
        for name, partitions in by_topic.items()
    ]


# -- AddOffsetsToTxn


def add_offsets_error(
    request: AddOffsetsToTxnRequest, version: int, error: Error, message: str | None
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error)


@serves(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, on_error=add_offsets_error)
def handle_add_offsets_to_txn(context: RequestContext, request: AddOffsetsToTxnRequest) -> None:
    check_transactional_id(context, Operation.WRITE, request.transactional_id)
    check_group(context, Operation.READ, request.group_id)
    services = context.services
    partition = TopicPartition(GROUP_METADATA_TOPIC, services.group_coordinator.partition_for(request.group_id))

    def respond(error: Error) -> None:
        first = AddOffsetsToTxnRequest.FIRST_VERSION_WITH_PRODUCER_FENCED
        context.respond(AddOffsetsToTxnResponse(error_code=_in_version(context.api_version, error, first)))

    services.transaction_coordinator.add_partitions(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        frozenset({partition}),
        TRANSACTION_VERSION_0,
        respond,
    )


# -- EndTxn


def end_txn_error(request: EndTxnRequest, version: int, error: Error, message: str | None) -> EndTxnResponse:
    return EndTxnResponse(error_code=error)


@serves(ApiKey.END_TXN, 0, 5, on_error=end_txn_error)
def handle_end_txn(context: RequestContext, request: EndTxnRequest) -> None:
    check_transactional_id(context, Operation.WRITE, request.transactional_id)
    version = context.api_version
    knows_epoch = version >= EndTxnResponse.FIRST_VERSION_WITH_PRODUCER_EPOCH
    client_transaction_version = TRANSACTION_VERSION_2 if knows_epoch else TRANSACTION_VERSION_0

    def respond(ended: ProducerResponse) -> None:
        first = EndTxnRequest.FIRST_VERSION_WITH_PRODUCER_FENCED
        response = EndTxnResponse(error_code=_in_version(version, ended.error, first))
        if knows_epoch:
            response.producer_id, response.producer_epoch = ended.producer
        context.respond(response)

    context.services.transaction_coordinator.end(
        request.transactional_id,
        EndRequest(request.producer_id, request.producer_epoch, request.committed, client_transaction_version),
        respond,
    )


# -- WriteTxnMarkers


def write_markers_error(
    request: WriteTxnMarkersRequest, version: int, error: Error, message: str | None
) -> WriteTxnMarkersResponse:
    return _markers_response(request, [dict.fromkeys(_marked(marker.topics), error) for marker in request.markers])


@serves(ApiKey.WRITE_TXN_MARKERS, 1, 2, on_error=write_markers_error)
def handle_write_txn_markers(context: RequestContext, request: WriteTxnMarkersRequest) -> None:
    if not is_cluster_allowed(context, Operation.ALTER, log_if_denied=False):
        check_cluster(context, Operation.CLUSTER_ACTION)
    results: list[Mapping[TopicPartition, Error]] = [{} for _ in request.markers]
    waiting = set(range(len(request.markers)))

    def done(position: int, errors: Mapping[TopicPartition, Error]) -> None:
        results[position] = {
            partition: Error.NOT_LEADER_OR_FOLLOWER if error in _COORDINATOR_MOVED else error
            for partition, error in errors.items()
        }
        waiting.discard(position)
        if not waiting:
            context.respond(_markers_response(request, results))

    if not waiting:
        context.respond(WriteTxnMarkersResponse())
    for position, marker in enumerate(request.markers):
        context.services.local_marker_writer.write(
            TransactionMarker(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_result,
                marker.transaction_version,
            ),
            dict.fromkeys(_marked(marker.topics)),
            partial(done, position),
        )


def _marked(topics: Iterable[WriteTxnMarkersRequest.WritableTxnMarkerTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for topic in topics for partition in topic.partition_indexes]


def _markers_response(
    request: WriteTxnMarkersRequest, results: Sequence[Mapping[TopicPartition, Error]]
) -> WriteTxnMarkersResponse:
    markers = []
    for marker, errors in zip(request.markers, results, strict=True):
        topics = [
            WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                        partition_index=partition, error_code=errors[TopicPartition(topic.name, partition)]
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ]
        markers.append(WriteTxnMarkersResponse.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=markers)
