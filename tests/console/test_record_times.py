"""The time of the first unread record, where the committed offset itself may have no record."""

from __future__ import annotations

from kafkapy.client import Producer
from kafkapy.console.record_search import times_at
from kafkapy.testing import Broker
from kafkapy.types import TopicPartition


def test_the_marker_of_a_transaction_is_skipped() -> None:
    with Broker() as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        with Producer({**servers, "transactional.id": "payments"}) as producer:
            producer.init_transactions()
            for timestamp in (1000, 2000):
                producer.begin_transaction()
                producer.send("orders", b"paid", timestamp=timestamp)
                producer.commit_transaction()
        orders = TopicPartition("orders", 0)
        # The offsets are those of a record, a marker, a record and a marker.
        found = [times_at(servers, {orders: (start, 4)}) for start in range(4)]
        assert found == [{orders: 1000}, {orders: 2000}, {orders: 2000}, {}]
