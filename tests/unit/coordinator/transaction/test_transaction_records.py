"""Records of `__transaction_state` byte for byte as Apache Kafka 4.3 wrote them, and back."""

from __future__ import annotations

from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_records import (
    transaction_metadata_from,
    transaction_record,
    transaction_tombstone,
    transactional_id_from,
)
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.types import TopicPartition

# (transactional id, metadata, key, value)
KAFKA_RECORDS = [
    (
        "offr2",
        TransactionMetadata(
            producer_id=5,
            previous_producer_id=5,
            next_producer_id=-1,
            producer_epoch=0,
            timeout_ms=60000,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=-1,
            last_update_ms=1795263808629,
            client_transaction_version=0,
        ),
        "000000056f66667232",
        "0001000000000000000500000000ea600000000001a1fe0fc475ffffffffffffffff0100080000000000000005",
    ),
    (
        "offr2",
        TransactionMetadata(
            producer_id=5,
            previous_producer_id=5,
            next_producer_id=-1,
            producer_epoch=0,
            timeout_ms=60000,
            state=TransactionState.ONGOING,
            partitions=frozenset({TopicPartition("__consumer_offsets", 0)}),
            start_ms=1795263808640,
            last_update_ms=1795263808640,
            client_transaction_version=0,
        ),
        "000000056f66667232",
        "0001000000000000000500000000ea600102135f5f636f6e73756d65725f6f666673657473020000000000000001a1fe0fc480000001a1fe0fc4800100080000000000000005",
    ),
    (
        "offr2",
        TransactionMetadata(
            producer_id=5,
            previous_producer_id=5,
            next_producer_id=-1,
            producer_epoch=0,
            timeout_ms=60000,
            state=TransactionState.PREPARE_COMMIT,
            partitions=frozenset({TopicPartition("__consumer_offsets", 0), TopicPartition("__consumer_offsets", 17)}),
            start_ms=1795263808640,
            last_update_ms=1795263808700,
            client_transaction_version=0,
        ),
        "000000056f66667232",
        "0001000000000000000500000000ea600202135f5f636f6e73756d65725f6f66667365747303000000000000001100000001a1fe0fc4bc000001a1fe0fc4800100080000000000000005",
    ),
    (
        "offr2",
        TransactionMetadata(
            producer_id=5,
            previous_producer_id=5,
            next_producer_id=-1,
            producer_epoch=0,
            timeout_ms=60000,
            state=TransactionState.COMPLETE_COMMIT,
            partitions=frozenset(),
            start_ms=1795263808640,
            last_update_ms=1795263808702,
            client_transaction_version=0,
        ),
        "000000056f66667232",
        "0001000000000000000500000000ea600401000001a1fe0fc4be000001a1fe0fc4800100080000000000000005",
    ),
    (
        "offr2",
        TransactionMetadata(
            producer_id=5,
            previous_producer_id=5,
            next_producer_id=-1,
            producer_epoch=1,
            timeout_ms=60000,
            state=TransactionState.PREPARE_ABORT,
            partitions=frozenset({TopicPartition("__consumer_offsets", 17)}),
            start_ms=1795263809007,
            last_update_ms=1795263809012,
            client_transaction_version=2,
        ),
        "000000056f66667232",
        "0001000000000000000500010000ea600302135f5f636f6e73756d65725f6f666673657473020000001100000001a1fe0fc5f4000001a1fe0fc5ef020008000000000000000502020002",
    ),
    (
        "offr2",
        TransactionMetadata(
            producer_id=5,
            previous_producer_id=5,
            next_producer_id=-1,
            producer_epoch=1,
            timeout_ms=60000,
            state=TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            start_ms=1795263809007,
            last_update_ms=1795263809014,
            client_transaction_version=2,
        ),
        "000000056f66667232",
        "0001000000000000000500010000ea600501000001a1fe0fc5f6000001a1fe0fc5ef020008000000000000000502020002",
    ),
]


def test_as_apache_kafka_writes_them() -> None:
    for transactional_id, metadata, key, value in KAFKA_RECORDS:
        record = transaction_record(transactional_id, metadata, 1)
        assert (record.key.hex(), record.value and record.value.hex()) == (key, value)


def test_records_of_apache_kafka_are_read() -> None:
    for transactional_id, metadata, key, value in KAFKA_RECORDS:
        assert transactional_id_from(bytes.fromhex(key)) == transactional_id
        assert transaction_metadata_from(bytes.fromhex(value)) == metadata


def test_version_0_leaves_out_what_it_cannot_hold() -> None:
    metadata = KAFKA_RECORDS[0][1]
    record = transaction_record("a", metadata, 0)
    assert record.value is not None and record.value[:2] == b"\0\0"
    assert transaction_metadata_from(record.value) == metadata._replace(
        previous_producer_id=-1, client_transaction_version=0
    )


def test_tombstones_and_unknown_types() -> None:
    transactional_id, _, key, _ = KAFKA_RECORDS[0]
    assert transaction_tombstone(transactional_id) == (bytes.fromhex(key), None)
    assert transactional_id_from(b"\0\x63" + bytes.fromhex(key)[2:]) is None
