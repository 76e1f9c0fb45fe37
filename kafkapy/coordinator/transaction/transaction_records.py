"""Records of `__transaction_state`, in the versions that Apache Kafka 4.3 writes."""

from __future__ import annotations

from typing import Any

from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.protocol.coordinator_record import (
    Coordinator,
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator,
)
from kafkapy.protocol.messages.coordinator_records import TransactionLogKey, TransactionLogValue
from kafkapy.protocol.record_frame import UnknownRecordError
from kafkapy.types import TopicPartition, by_topic


def transaction_record(transactional_id: str, metadata: TransactionMetadata, version: int) -> CoordinatorRecord:
    """Returns the record of a transactional id.

    `version` is the version of the value: 0 while transaction.version is 0, otherwise 1.
    """
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None
        if metadata.state is TransactionState.EMPTY
        else [
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=partitions)
            for topic, partitions in by_topic(sorted(metadata.partitions)).items()
        ],
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if version >= TransactionLogValue.FIRST_VERSION_WITH_PREVIOUS_PRODUCER_ID:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_transaction_version
    return CoordinatorRecord(transaction_key(transactional_id), encode_coordinator(value, version))


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(transaction_key(transactional_id), None)


def transaction_key(transactional_id: str) -> bytes:
    return encode_coordinator(TransactionLogKey(transactional_id=transactional_id))


def transactional_id_from(key: bytes) -> str | None:
    """Returns the transactional id in a record's key, or None if the key's type is unknown, because a newer version of
    Kafka has written the record."""
    try:
        decoded: Any = decode_coordinator_key(key, Coordinator.TRANSACTION)
    except UnknownRecordError:
        return None
    transactional_id: str = decoded.transactional_id
    return transactional_id


def transaction_metadata_from(value: bytes) -> TransactionMetadata:
    stored: Any = decode_coordinator_value(TransactionLogKey.API_KEY, value, Coordinator.TRANSACTION)
    return TransactionMetadata(
        producer_id=stored.producer_id,
        previous_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id,
        producer_epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        state=TransactionState(stored.transaction_status),
        partitions=frozenset(
            TopicPartition(schema.topic, partition)
            for schema in stored.transaction_partitions or ()
            for partition in schema.partition_ids
        ),
        start_ms=stored.transaction_start_timestamp_ms,
        last_update_ms=stored.transaction_last_update_timestamp_ms,
        client_transaction_version=stored.client_transaction_version,
    )
