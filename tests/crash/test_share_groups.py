"""Share groups after kill -9: acknowledged records are not delivered again, and all others are."""

from __future__ import annotations

from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.share_client import ShareClient

PROPERTIES = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
}
ACCEPT, RELEASE, REJECT = 1, 2, 3


def test_acknowledged_records_are_not_delivered_again_and_others_are_not_lost(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, PROPERTIES) as broker:
        client = ShareClient(broker.port, "records")
        client.produce(*[b"%d" % number for number in range(12)])
        client.join()
        client.first_fetch("first")
        answer = client.acknowledge("most of them", "m1", (0, 2, [ACCEPT]), (4, 5, [REJECT]), (6, 7, [RELEASE]))
        assert answer.responses[0].partitions[0].error_code == 0
        broker.kill()  # before the connection is closed, which would release what is acquired
        client.close()
        broker.start()
        client.reconnect()
        client.epochs.clear()
        client.first_fetch("after the restart", "m2")
        # 3 and 8 to 11 were acquired, which is not stored; 6 and 7 were released after their first delivery.
        assert client.said[-1] == (
            "after the restart: 0 ['0 acks 0 None acquired [(3, 3, 1), (6, 7, 2), (8, 11, 1)] records 0..11']"
        )
        # The stored start offset is that of the time before the acknowledgement; five records are complete.
        client.offsets("accepted and rejected")
        assert client.said[-1] == "accepted and rejected: 0 [(0, 7, 0)]"
        client.close()
