"""DeleteRecords on the wire."""

from __future__ import annotations

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.server.handlers.records import handle_delete_records
from tests.harness.handler import HandlerHarness
from tests.harness.replica import partition_image


@pytest.mark.parametrize("version", range(3))
def test_delete_records(tmp_path, version):
    harness = HandlerHarness(tmp_path)
    harness.put_topic("t", [partition_image(), partition_image()])
    harness.append(b"a", b"b")
    topic = DeleteRecordsRequest.DeleteRecordsTopic(
        name="t",
        partitions=[
            DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)
            for index, offset in ((0, -1), (1, 5), (7, 0))
        ],
    )
    response = harness.send(
        handle_delete_records, DeleteRecordsRequest(topics=[topic], timeout_ms=1000), version
    ).response
    (answered,) = response.topics
    found = {each.partition_index: (each.error_code, each.low_watermark) for each in answered.partitions}
    assert found == {
        0: (0, 2),
        1: (Error.OFFSET_OUT_OF_RANGE, -1),
        7: (Error.UNKNOWN_TOPIC_OR_PARTITION, -1),
    }
