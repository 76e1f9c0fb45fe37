"""The records that a share consumer has delivered, and their acknowledgements."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafkapy.client.acknowledgements import AcknowledgeType, Run
from kafkapy.client.errors import AcknowledgementError
from kafkapy.client.share_deliveries import ShareDeliveries, ShareSource
from kafkapy.client.share_session import SharePartition
from kafkapy.types import TopicPartition


def test_records_of_one_partition_that_two_brokers_have_delivered_can_be_acknowledged():
    """The leader has changed while the fetches were in flight."""
    deliveries = ShareDeliveries(None)
    partition = SharePartition(b"i" * 16, TopicPartition("t", 0))
    former, leader = ShareSource(1, partition), ShareSource(2, partition)
    records = [SimpleNamespace(offset=offset) for offset in (3, 4, 5)]
    deliveries.renewed(former, records[:2], None)
    deliveries.renewed(leader, records[1:], None)
    assert deliveries.collect_renewed() == [*records[:2], *records[1:]]
    for record in records:
        deliveries.acknowledge("t", 0, record.offset, AcknowledgeType.ACCEPT, record)
    with pytest.raises(AcknowledgementError):
        deliveries.acknowledge("t", 0, 6, AcknowledgeType.ACCEPT, SimpleNamespace(offset=6))
    assert deliveries.is_acknowledged
    taken = deliveries.take()
    assert taken[former].runs == [Run(3, 4, AcknowledgeType.ACCEPT)]
    assert taken[leader].runs == [Run(4, 5, AcknowledgeType.ACCEPT)]
