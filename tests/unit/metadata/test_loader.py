"""Metadata transactions: their records take effect only at the end of the transaction."""

import pytest

from kafkapy.metadata.image import EMPTY_IMAGE
from kafkapy.metadata.loader import MetadataLoader
from kafkapy.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    TopicRecord,
)

FIRST, SECOND = (TopicRecord(name=name, topic_id=name.encode() * 16) for name in "ab")


def played(*records):
    loader = MetadataLoader(EMPTY_IMAGE)
    for record in records:
        loader.replay(record)
    return loader.in_transaction, sorted(loader.delta.to_image(0, 0).topics.by_name)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([FIRST], (False, ["a"])),
        ([BeginTransactionRecord(), FIRST], (True, [])),
        ([BeginTransactionRecord(), FIRST, EndTransactionRecord()], (False, ["a"])),
        ([BeginTransactionRecord(), FIRST, AbortTransactionRecord()], (False, [])),
        ([BeginTransactionRecord(), FIRST, AbortTransactionRecord(), SECOND], (False, ["b"])),
    ],
)
def test_records_count_when_their_transaction_has_ended(records, expected):
    assert played(*records) == expected


@pytest.mark.parametrize(
    "records",
    [[EndTransactionRecord()], [AbortTransactionRecord()], [BeginTransactionRecord(), BeginTransactionRecord()]],
)
def test_marks_out_of_order_are_refused(records):
    with pytest.raises(ValueError, match="transaction"):
        played(*records)
