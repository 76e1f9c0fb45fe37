"""Produce: appends record batches to partitions and responds with their offsets.

The batches of each partition are appended or refused independently of the other partitions. With acks=0 nothing is sent
back, and an error closes the connection. With acks=-1 the response waits for the in-sync replicas.

Version notes: versions 0 to 2 accept message sets of magic 0 and 1; versions from 3 accept exactly one batch of magic 2
for each partition. Version 7 adds zstd, 10 hints to the leader (KIP-951), 11 the error TRANSACTION_ABORTABLE, and 13
topic ids. From 12 on the broker adds the partitions to the transaction (KIP-890).

Permissions: Write on the topic; Write on the transactional id for transactional records. Writes of the broker itself,
such as those of the coordinators, are not checked.

The usual requests do not reach this module: compiled code (the gate, `_core/gate/produce_gate`) serves them without
Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kafkapy._core.bytes.compression import ZSTD
from kafkapy._core.bytes.record_batch import BATCH_MAGIC, MAGIC_AT
from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.replica.partition_response import PartitionResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import NO_NAMES, check_transactional_id, denied_topics
from kafkapy.server.leader_hints import LeaderHints
from kafkapy.server.opening_ahead import Checked, open_ahead
from kafkapy.server.produced_records import ProducedRecords
from kafkapy.server.request_context import RequestContext
from kafkapy.server.transaction_verification import ClientSupport
from kafkapy.types import TopicPartition

ADMIN_CLIENT_ID = "__admin_client"

Responses = Mapping[TopicPartition, PartitionResponse]


def produce_error(request: ProduceRequest, version: int, error: Error, message: str | None) -> ProduceResponse | None:
    """Returns a response with `error` for every partition, or None if the request has acks=0, which gets no
    response."""
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
def handle_produce(context: RequestContext, request: ProduceRequest) -> None:
    ProduceOperation(context, request).run()


class ProduceOperation:
    """One produce request, from its partitions to its response. Only the reactor's thread may use it.

    Each step calls the next one, at once or when the operation that it waits for is complete:

        split        divides the partitions into those to append to and those that are refused
        open ahead   validates batches that take long to decompress, on the handler pool
        verify       asks the transaction coordinator, for transactional records
        append       appends to the logs, and waits for the in-sync replicas with acks=-1
        respond
    """

    __slots__ = ("_context", "_entries", "_manager", "_names", "_producers", "_refused", "_request")

    def __init__(self, context: RequestContext, request: ProduceRequest) -> None:
        self._context = context
        self._request = request
        self._manager = context.services.replica_manager
        self._names: list[str] = []  # of the request's topics, in its order; "" for an unknown topic id
        self._entries: dict[TopicPartition, memoryview] = {}  # records to append
        self._producers: dict[TopicPartition, ProducerIdAndEpoch] = {}  # of the transactional entries
        self._refused: dict[TopicPartition, PartitionResponse] = {}  # responses without an append

    def run(self) -> None:
        """Starts the operation. Raises ApiError if the request is refused as a whole."""
        if self._context.services.authorizer is not None:
            self._check_transactional_id()
        self._split()
        if self._request.transactional_id is not None:
            self._set_producers()
        self._open_ahead()

    def _check_transactional_id(self) -> None:
        """Raises ApiError if the request has transactional records that the client may not write."""
        request = self._request
        sent = (data.records for topic in request.topic_data for data in topic.partition_data)
        if any(records is not None and ProducedRecords(records).is_transactional for records in sent):
            if request.transactional_id is None:
                raise ApiError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            check_transactional_id(self._context, Operation.WRITE, request.transactional_id)

    def _split(self) -> None:
        with_ids = self._context.api_version >= ProduceRequest.FIRST_VERSION_WITH_TOPIC_ID
        by_id = self._context.services.metadata.image.topics.by_id
        for topic in self._request.topic_data:
            if with_ids:
                known = by_id.get(topic.topic_id)
                name = known.name if known is not None else ""
            else:
                name = topic.name
            self._names.append(name)
        denied = NO_NAMES
        if self._context.services.authorizer is not None:
            known_names = (name for name in self._names if name or not with_ids)
            denied = denied_topics(self._context, Operation.WRITE, known_names)
        for topic, name in zip(self._request.topic_data, self._names, strict=True):
            if with_ids and not name:
                continue  # the response has UNKNOWN_TOPIC_ID for partitions without a result
            if name in denied:
                refused = PartitionResponse(Error.TOPIC_AUTHORIZATION_FAILED)
                self._refused.update((TopicPartition(name, data.index), refused) for data in topic.partition_data)
                continue
            for data in topic.partition_data:
                self._split_partition(TopicPartition(name, data.index), data.records)

    def _split_partition(self, topic_partition: TopicPartition, records: memoryview | None) -> None:
        version = self._context.api_version
        manager = self._manager
        is_hosted = topic_partition in manager.partitions
        if not is_hosted and manager.find_partition(topic_partition) is Error.UNKNOWN_TOPIC_OR_PARTITION:
            self._refused[topic_partition] = PartitionResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
            return
        if records is None:
            self._refused[topic_partition] = PartitionResponse(Error.INVALID_RECORD)
            return
        produced = ProducedRecords(records)
        if version < ProduceRequest.FIRST_VERSION_WITH_BATCHES and not produced.has_whole_message:
            self._refused[topic_partition] = PartitionResponse()  # an empty message set is no error
            return
        error = first_batch_error(produced, version, self._request.transactional_id)
        if error:
            self._refused[topic_partition] = PartitionResponse(error)
        else:
            self._entries[topic_partition] = records

    def _set_producers(self) -> None:
        """Sets the producer of each partition with transactional records.

        Raises ApiError INVALID_PRODUCER_ID_MAPPING if there are several producers.
        """
        for topic_partition, records in self._entries.items():
            produced = ProducedRecords(records)
            if produced.is_transactional:
                self._producers[topic_partition] = produced.producer
        if len(set(self._producers.values())) > 1:
            text = "Transactional records contained more than one producer ID"
            raise ApiError(Error.INVALID_PRODUCER_ID_MAPPING, text)

    def _open_ahead(self) -> None:
        if self._entries:
            open_ahead(self._context.submit, self._manager, self._entries, self._verify)
        else:
            self._respond({})

    def _verify(self, checked: Checked) -> None:
        """Verifies that the partitions belong to the producer's open transaction, and refuses the partitions that do
        not.

        Appends the records to the other partitions directly afterwards: nothing that could end the transaction may run
        in between. `checked` is passed to the append; it has the results for the large batches that another thread has
        validated before (`open_ahead`).
        """
        transactional_id = self._request.transactional_id
        if transactional_id is None or not self._producers:
            self._append(checked)
            return
        self._context.services.transaction_verification.check(
            transactional_id,
            next(iter(self._producers.values())),
            tuple(self._producers),
            transaction_support(self._context.api_version),
            partial(self._on_verified, checked),
            lambda topic_partition: ProducedRecords(self._entries[topic_partition]).first_sequence,
        )

    def _on_verified(self, checked: Checked, results: Mapping[TopicPartition, Error]) -> None:
        for topic_partition, error in results.items():
            if error:
                del self._entries[topic_partition]
                message = "Partition was not added to the transaction" if error is Error.INVALID_TXN_STATE else None
                self._refused[topic_partition] = PartitionResponse(error, error_message=message)
        if self._entries:
            self._append(checked)
        else:
            self._respond({})

    def _append(self, checked: Checked) -> None:
        if self._context.services.audit is not None:
            self._note_client()
        self._manager.append_records(
            self._request.timeout_ms,
            self._request.acks,
            self._entries,
            self._respond,
            internal_topics_allowed=self._context.client_id == ADMIN_CLIENT_ID,
            checked=checked,
        )

    def _note_client(self) -> None:
        """Notes for the audit which client appends to the audited partitions, because batches do not name the client.

        The compiled request path (the gate) does this itself for the requests that it serves.
        """
        client_id = (self._context.client_id or "").encode()
        for topic_partition in self._entries:
            partition = self._manager.partitions.get(topic_partition)
            if partition is not None and partition.client_notes is not None:
                partition.client_notes.note_append(partition.log.log_end_offset, client_id)

    def _respond(self, appended: Responses) -> None:
        context = self._context
        responses = {**self._refused, **appended} if self._refused else appended
        for response in responses.values():
            if response.error:
                context.services.request_errors.count(context.api_key, response.error)
        throttle_ms = 0 if context.cost is None else context.cost.charge_produce()
        if self._request.acks != 0:
            context.respond(produce_response(context, self._request, self._names, responses), throttle_ms)
        elif self._has_error(responses):
            # The producer expects no response; only a closed connection shows it the error.
            context.connection.close(f"produce with acks=0 from client {context.client_id} failed")
        else:
            context.respond(None, throttle_ms)

    def _has_error(self, responses: Responses) -> bool:
        if not responses:
            return bool(self._request.topic_data)
        for topic, name in zip(self._request.topic_data, self._names, strict=True):
            for data in topic.partition_data:
                response = responses.get(TopicPartition(name, data.index))
                if response is None or response.error:
                    return True
        return False


def transaction_support(version: int) -> ClientSupport:
    """Returns what a client of this Produce version can do for its transaction: let the append add the partition
    (ADD_PARTITIONS), handle abortable errors of the verification (VERIFY_ABORTABLE), or neither (VERIFY).
    """
    if version >= ProduceRequest.FIRST_VERSION_WITH_IMPLICIT_PARTITIONS:
        return ClientSupport.ADD_PARTITIONS
    if version >= ProduceRequest.FIRST_VERSION_WITH_ABORTABLE_ERRORS:
        return ClientSupport.VERIFY_ABORTABLE
    return ClientSupport.VERIFY


def first_batch_error(produced: ProducedRecords, version: int, transactional_id: str | None) -> Error:
    """Returns an error if the Produce version does not allow the partition's first batch, otherwise NONE.

    The log validates all other properties, and the message sets of versions 0 to 2. Raises ApiError, which refuses the
    whole request, for bytes that cannot be a batch and for transactional records without a transactional id.
    """
    if version < ProduceRequest.FIRST_VERSION_WITH_BATCHES:
        return Error.INVALID_PRODUCER_ID_MAPPING if produced.is_transactional else Error.NONE
    size = produced.size_at(0)
    if not size or produced.data[MAGIC_AT] != BATCH_MAGIC:
        return Error.INVALID_RECORD
    if produced.codec == ZSTD and version < ProduceRequest.FIRST_VERSION_WITH_ZSTD:
        return Error.UNSUPPORTED_COMPRESSION_TYPE
    if size < len(produced.data) and produced.size_at(size):
        return Error.INVALID_RECORD
    if produced.is_transactional and transactional_id is None:
        raise ApiError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return Error.NONE


def produce_response(
    context: RequestContext, request: ProduceRequest, names: list[str], responses: Responses
) -> ProduceResponse:
    """Builds the response in the order of the request.

    `names` are the names of the request's topics; a partition without an entry in `responses` gets UNKNOWN_TOPIC_ID.
    """
    version = context.api_version
    hints = LeaderHints(context.services, context.listener.name)
    topics = []
    for topic, name in zip(request.topic_data, names, strict=True):
        partitions = []
        for data in topic.partition_data:
            topic_partition = TopicPartition(name, data.index)
            found = responses.get(topic_partition) or PartitionResponse(Error.UNKNOWN_TOPIC_ID)
            partition = ProduceResponse.PartitionProduceResponse(
                index=data.index,
                error_code=found.error,
                base_offset=found.base_offset,
                log_append_time_ms=found.log_append_time_ms,
                log_start_offset=found.log_start_offset,
            )
            if found.error:
                partition.error_message = found.error_message
                partition.record_errors = [
                    ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                    for index, message in found.record_errors
                ]
                if (
                    found.error is Error.NOT_LEADER_OR_FOLLOWER
                    and version >= ProduceResponse.FIRST_VERSION_WITH_CURRENT_LEADER
                ):
                    hint = hints.find(topic_partition)
                    partition.current_leader = ProduceResponse.LeaderIdAndEpoch(
                        leader_id=hint.leader_id, leader_epoch=hint.leader_epoch
                    )
            partitions.append(partition)
        topics.append(
            ProduceResponse.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
            )
        )
    return ProduceResponse(responses=topics, node_endpoints=hints.endpoints(ProduceResponse.NodeEndpoint))
