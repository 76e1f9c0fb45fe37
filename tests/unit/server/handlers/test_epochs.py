"""The handler of OffsetForLeaderEpoch, in every version of the API."""

from __future__ import annotations

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkapy.server.handlers.epochs import handle_offset_for_leader_epoch
from tests.harness.handler import HandlerHarness
from tests.harness.replica import partition_image


@pytest.mark.parametrize("version", range(5))
def test_offset_for_leader_epoch(tmp_path, version):
    harness = HandlerHarness(tmp_path)
    harness.put_topic("t", [partition_image()])
    harness.append(b"a", b"b")
    harness.put_topic("t", [partition_image(leader_epoch=2, partition_epoch=1)])
    harness.append(b"c")

    def ask(partition, epoch, current=-1):
        topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
            topic="t",
            partitions=[
                OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=partition, current_leader_epoch=current, leader_epoch=epoch
                )
            ],
        )
        response = harness.send(
            handle_offset_for_leader_epoch, OffsetForLeaderEpochRequest(topics=[topic]), version
        ).response
        (found,) = response.topics[0].partitions
        return found.error_code, found.leader_epoch, found.end_offset

    def known(epoch):
        return epoch if version >= 1 else -1

    assert ask(0, 0) == (0, known(0), 2)
    assert ask(0, 1) == (0, known(0), 2)
    assert ask(0, 2) == (0, known(2), 3)
    assert ask(0, 3) == (0, -1, -1)
    assert ask(9, 0) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    if version >= 2:
        assert ask(0, 0, current=1)[0] == Error.FENCED_LEADER_EPOCH
        assert ask(0, 0, current=2)[0] == 0
        assert ask(0, 0, current=3)[0] == Error.UNKNOWN_LEADER_EPOCH
