"""The expiry of many transactional ids at once, whose tombstones do not fit into one batch."""

from __future__ import annotations

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_records import transaction_record
from kafkapy.errors import Error
from tests.scenarios.transaction_harness import SETTINGS, TransactionHarness

LARGEST_BATCH = 100000


def test_many_transactional_ids_expire_at_once() -> None:
    harness = TransactionHarness()
    append = harness.log.append

    def limited(partition, batch, on_committed):
        if len(batch) > LARGEST_BATCH:
            harness.log.next_failure = Error.MESSAGE_TOO_LARGE
        append(partition, batch, on_committed)

    harness.log.append = limited
    builder = RecordBatchBuilder(0)
    for number in range(3000):
        metadata = TransactionMetadata(producer_id=number, producer_epoch=0, last_update_ms=0)
        record = transaction_record(f"transactional-id-{number:050}", metadata, 1)
        builder.append(0, record.key, record.value)
    harness.log.append_raw(bytes(builder.build()))
    harness.run("elect")
    assert len(list(harness.coordinator.transactions())) == 3000
    harness.clock.advance(SETTINGS["transactional.id.expiration.ms"])
    harness.schedule.advance(SETTINGS["transaction.remove.expired.transaction.cleanup.interval.ms"])
    assert not list(harness.coordinator.transactions())
