"""Produce: takes record batches to their partitions and answers where they landed (step "handler")."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from kafkapy._core.bytes.compression import ATTRIBUTES_MASK, ZSTD
from kafkapy._core.bytes.record_batch import (
    BATCH_MAGIC,
    LENGTH_AT,
    LOG_OVERHEAD,
    LOW_ATTRIBUTES_AT,
    MAGIC_AT,
    PRODUCER_ID_AT,
    SMALLEST_LENGTH,
    TRANSACTIONAL_ATTRIBUTE,
)
from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.replica.append import PartitionResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.leader_hints import LeaderNode, leader_hint
from kafkapy.server.opening_ahead import Checked, open_ahead
from kafkapy.server.request_context import RequestContext
from kafkapy.server.transaction_verification import ClientSupport
from kafkapy.types import TopicPartition

ADMIN_CLIENT_ID = "__admin_client"

_PRODUCER = struct.Struct(">qh")

Responses = Mapping[TopicPartition, PartitionResponse]


def produce_error(request: ProduceRequest, version: int, error: Error, message: str | None) -> ProduceResponse | None:
    """The same error for every partition; nothing with acks 0."""
    if request.acks == 0:
        return None
    has_message = message is not None and message != error.message
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(
                        index=partition.index,
                        error_code=error,
                        base_offset=-1,
                        error_message=message if has_message else None,
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


@serves(ApiKey.PRODUCE, 0, 13, on_error=produce_error)
def produce(context: RequestContext, request: ProduceRequest) -> None:
    version = context.api_version
    manager = context.services.replica_manager
    by_id = context.services.metadata.image.topics.by_id
    entries: dict[TopicPartition, memoryview] = {}
    refused: dict[TopicPartition, PartitionResponse] = {}
    names: list[str] = []
    for topic in request.topic_data:
        if version >= ProduceRequest.FIRST_VERSION_WITH_TOPIC_ID:
            known = by_id.get(topic.topic_id)
            name = known.name if known is not None else ""
        else:
            name = topic.name
        names.append(name)
        for data in topic.partition_data:
            if not name and version >= ProduceRequest.FIRST_VERSION_WITH_TOPIC_ID:
                continue  # answered with UNKNOWN_TOPIC_ID below
            topic_partition = TopicPartition(name, data.index)
            if topic_partition not in manager.partitions:
                error = manager.find_partition(topic_partition)
                if error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                    refused[topic_partition] = PartitionResponse(error)
                    continue
            records = data.records
            if (
                version < ProduceRequest.FIRST_VERSION_WITH_BATCHES
                and records is not None
                and not has_whole_message(records)
            ):
                refused[topic_partition] = PartitionResponse()  # an empty set of old is no error, and appends nothing
                continue
            error = check_records(records, version, request.transactional_id)
            if error or records is None:
                refused[topic_partition] = PartitionResponse(error)
            else:
                entries[topic_partition] = records

    def answer(appended: Responses) -> None:
        responses = {**refused, **appended} if refused else appended
        for response in responses.values():
            if response.error:
                context.services.request_errors.count(context.api_key, response.error)
        if request.acks == 0:
            answer_without_acks(context, request, names, responses)
        else:
            context.respond(produce_response(context, request, names, responses))

    def append(checked: Checked) -> None:
        manager.append_records(
            request.timeout_ms,
            request.acks,
            entries,
            answer,
            internal_topics_allowed=context.client_id == ADMIN_CLIENT_ID,
            checked=checked,
        )

    def open_and_append() -> None:
        if entries:
            open_ahead(context.services.handler_pool, manager, entries, append)
        else:
            answer({})

    if request.transactional_id is None:
        open_and_append()
    else:
        verify_transaction(context, request.transactional_id, entries, refused, open_and_append)


def verify_transaction(
    context: RequestContext,
    transactional_id: str,
    entries: dict[TopicPartition, memoryview],
    refused: dict[TopicPartition, PartitionResponse],
    then: Callable[[], None],
) -> None:
    """Moves what does not belong to the producer's open transaction from `entries` to `refused`, and goes on.

    ApiError: INVALID_PRODUCER_ID_MAPPING for batches of several producers.
    """
    producers = {
        topic_partition: producer_of(records)
        for topic_partition, records in entries.items()
        if records[MAGIC_AT] == 2 and records[LOW_ATTRIBUTES_AT] & TRANSACTIONAL_ATTRIBUTE
    }
    if not producers:
        then()
        return
    if len(set(producers.values())) > 1:
        raise ApiError(Error.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID")
    producer = next(iter(producers.values()))

    def verified(results: Mapping[TopicPartition, Error]) -> None:
        for topic_partition, error in results.items():
            if error:
                del entries[topic_partition]
                message = "Partition was not added to the transaction" if error is Error.INVALID_TXN_STATE else None
                refused[topic_partition] = PartitionResponse(error, error_message=message)
        then()

    support = transaction_support(context.api_version)
    context.services.transaction_verification.check(transactional_id, producer, tuple(producers), support, verified)


def transaction_support(version: int) -> ClientSupport:
    if version >= ProduceRequest.FIRST_VERSION_WITH_IMPLICIT_PARTITIONS:
        return ClientSupport.ADD_PARTITIONS
    return (
        ClientSupport.VERIFY_ABORTABLE
        if version >= ProduceRequest.FIRST_VERSION_WITH_ABORTABLE_ERRORS
        else ClientSupport.VERIFY
    )


def producer_of(records: memoryview) -> ProducerIdAndEpoch:
    """Of the batch at the beginning, which is a whole one in the newest format."""
    return ProducerIdAndEpoch(*_PRODUCER.unpack_from(records, PRODUCER_ID_AT))


def has_whole_message(records: memoryview) -> bool:
    """Whether anything of an old message set would be read: all else is the cut-off tail that old readers expect."""
    if len(records) < LOG_OVERHEAD:
        return False
    length = int.from_bytes(records[LENGTH_AT:LOG_OVERHEAD], "big", signed=True)
    return length + LOG_OVERHEAD <= len(records)


def check_records(records: memoryview | None, version: int, transactional_id: str | None) -> Error:
    """What a produce version does not allow, seen in the header of the first batch; the log checks all the rest.

    ApiError for the whole request: bytes that cannot be a batch, transactional records without a transactional id.
    Versions below 3 allow every format: message sets are for the log to judge, each partition on its own.
    """
    if records is None:
        return Error.INVALID_RECORD
    if version < ProduceRequest.FIRST_VERSION_WITH_BATCHES:
        is_batch = len(records) > LOW_ATTRIBUTES_AT and records[MAGIC_AT] == BATCH_MAGIC
        is_transactional = is_batch and records[LOW_ATTRIBUTES_AT] & TRANSACTIONAL_ATTRIBUTE
        return Error.INVALID_PRODUCER_ID_MAPPING if is_transactional else Error.NONE
    size = batch_size(records, 0)
    if not size or records[MAGIC_AT] != BATCH_MAGIC:
        return Error.INVALID_RECORD
    attributes = records[LOW_ATTRIBUTES_AT]
    if attributes & ATTRIBUTES_MASK == ZSTD and version < ProduceRequest.FIRST_VERSION_WITH_ZSTD:
        return Error.UNSUPPORTED_COMPRESSION_TYPE
    if size < len(records) and batch_size(records, size):
        return Error.INVALID_RECORD
    if attributes & TRANSACTIONAL_ATTRIBUTE and transactional_id is None:
        raise ApiError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return Error.NONE


def batch_size(records: memoryview, pos: int) -> int:
    """Bytes of the batch, of whatever format, at `pos`; 0 if there is no whole one. ApiError: CORRUPT_MESSAGE."""
    available = len(records) - pos
    if available < LOG_OVERHEAD:
        return 0
    length = int.from_bytes(records[pos + LENGTH_AT : pos + LOG_OVERHEAD], "big", signed=True)
    if length < SMALLEST_LENGTH:
        text = f"Record size {length} is less than the minimum record overhead ({SMALLEST_LENGTH})"
        raise ApiError(Error.CORRUPT_MESSAGE, text)
    if available <= MAGIC_AT:
        return 0
    if records[pos + MAGIC_AT] > BATCH_MAGIC:
        raise ApiError(Error.CORRUPT_MESSAGE, f"Invalid magic found in record: {records[pos + MAGIC_AT]}")
    return length + LOG_OVERHEAD if length + LOG_OVERHEAD <= available else 0


def answer_without_acks(
    context: RequestContext, request: ProduceRequest, names: list[str], responses: Responses
) -> None:
    """Nothing is sent. An error closes the connection: the only way to tell a producer that does not listen."""
    has_error = len(responses) == 0 and bool(request.topic_data)
    for topic, name in zip(request.topic_data, names, strict=True):
        for data in topic.partition_data:
            response = responses.get(TopicPartition(name, data.index))
            if response is None or response.error:
                has_error = True
    if has_error:
        context.connection.close(f"produce with acks=0 from client {context.client_id} failed")
    else:
        context.respond(None)


def produce_response(
    context: RequestContext, request: ProduceRequest, names: list[str], responses: Responses
) -> ProduceResponse:
    version = context.api_version
    nodes: dict[int, LeaderNode] = {}
    topics = []
    for topic, name in zip(request.topic_data, names, strict=True):
        partitions = []
        for data in topic.partition_data:
            topic_partition = TopicPartition(name, data.index)
            found = responses.get(topic_partition) or PartitionResponse(Error.UNKNOWN_TOPIC_ID)
            answer = ProduceResponse.PartitionProduceResponse(
                index=data.index,
                error_code=found.error,
                base_offset=found.base_offset,
                log_append_time_ms=found.log_append_time_ms,
                log_start_offset=found.log_start_offset,
            )
            if found.error:
                answer.error_message = found.error_message
                answer.record_errors = [
                    ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                    for index, message in found.record_errors
                ]
                if (
                    found.error is Error.NOT_LEADER_OR_FOLLOWER
                    and version >= ProduceResponse.FIRST_VERSION_WITH_CURRENT_LEADER
                ):
                    hint = leader_hint(context, topic_partition)
                    answer.current_leader = ProduceResponse.LeaderIdAndEpoch(
                        leader_id=hint.leader_id, leader_epoch=hint.leader_epoch
                    )
                    if hint.node is not None:
                        nodes[hint.leader_id] = hint.node
            partitions.append(answer)
        topics.append(
            ProduceResponse.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
            )
        )
    response = ProduceResponse(responses=topics)
    if nodes:
        response.node_endpoints = [
            ProduceResponse.NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes.values()
        ]
    return response
