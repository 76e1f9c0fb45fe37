"""A consumer's position after a change of leader: still valid, or beyond the end of a truncated log (KIP-320)."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.client import LogTruncated, OffsetAndMetadata, TopicPartition
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.protocol.messages.list_offsets import ListOffsetsResponse
from kafkapy.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from tests.harness.client import MemoryBrokers

T0 = TopicPartition("t", 0)


class Brokers(MemoryBrokers):
    """Two brokers with the log of one partition; `log` has the leader epoch of each record."""

    def __init__(self):
        super().__init__(node_ids=(1, 2))
        self.log = [1] * 10
        self.elect(1, 1)
        self.answers |= {
            ApiKey.FETCH: self._fetch,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self._end_of_epoch,
        }

    def elect(self, leader, epoch):
        self.epoch = epoch
        self.add_topic("t", [(leader, epoch)])

    def _fetch(self, request, version):
        topics = []
        for topic in request.topics:
            (asked,) = topic.partitions
            told = FetchResponse.PartitionData(partition_index=0, high_watermark=len(self.log))
            if asked.current_leader_epoch != self.epoch:
                told.error_code = int(Error.FENCED_LEADER_EPOCH)
            elif asked.fetch_offset < len(self.log):
                epoch = self.log[asked.fetch_offset]
                batch = RecordBatchBuilder(asked.fetch_offset, partition_leader_epoch=epoch)
                batch.append(0, None, f"{epoch}".encode())
                told.records = batch.build()
            topics.append(FetchResponse.FetchableTopicResponse(topic_id=topic.topic_id, partitions=[told]))
        if not any(told.records for topic in topics for told in topic.partitions):
            self.clock.advance(20)
        return FetchResponse(responses=topics)

    def _list_offsets(self, request, version):
        told = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=0, offset=0, leader_epoch=self.epoch)
        return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[told])])

    def _end_of_epoch(self, request, version):
        (asked,) = request.topics[0].partitions
        told = OffsetForLeaderEpochResponse.EpochEndOffset(partition=0)
        if asked.current_leader_epoch != self.epoch:
            told.error_code = int(Error.FENCED_LEADER_EPOCH)
        else:
            epochs = [each for each in self.log if each <= asked.leader_epoch]
            told.leader_epoch, told.end_offset = (epochs[-1], len(epochs)) if epochs else (-1, -1)
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic="t", partitions=[told])]
        )


@pytest.fixture
def brokers():
    harness = Brokers()
    yield harness
    harness.close()


def consumer_of(brokers, reset="earliest"):
    consumer = brokers.consumer(auto_offset_reset=reset)
    consumer.assign([T0])
    return consumer


def read(consumer, count):
    found = []
    for _ in range(100):
        found += [(each.offset, int(each.value)) for each in consumer.poll(0.5)]
        if len(found) >= count:
            return found
    raise AssertionError(found)


def test_a_position_that_holds_is_checked_once_and_read_on_from(brokers):
    with consumer_of(brokers) as consumer:
        assert read(consumer, 10)[-1] == (9, 1)
        brokers.elect(2, 2)
        brokers.log += [2, 2]
        assert read(consumer, 2) == [(10, 2), (11, 2)]
    (asked,) = brokers.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    (partition,) = asked.topics[0].partitions
    assert (asked.replica_id, partition.current_leader_epoch, partition.leader_epoch) == (-1, 2, 1)


def test_after_a_cut_it_goes_back_to_where_the_logs_part(brokers):
    with consumer_of(brokers) as consumer:
        read(consumer, 10)
        brokers.elect(2, 2)
        brokers.log[6:] = [2] * 8
        assert read(consumer, 8) == [(offset, 2) for offset in range(6, 14)]


def test_without_a_policy_the_application_decides(brokers):
    with consumer_of(brokers, reset="none") as consumer:
        consumer.seek(T0, OffsetAndMetadata(10, "", 1))
        brokers.elect(2, 2)
        brokers.log[6:] = [2] * 8
        with pytest.raises(LogTruncated) as cut:
            read(consumer, 1)
        assert cut.value.agreed == (6, 1)
        consumer.seek(T0, OffsetAndMetadata(*cut.value.agreed[:1], "", 1))
        assert read(consumer, 8)[0] == (6, 2)


def test_an_epoch_that_the_log_has_nothing_of_leads_to_the_policy(brokers):
    brokers.elect(1, 5)
    brokers.log[:] = [5] * 4
    with consumer_of(brokers) as consumer:
        consumer.seek(T0, OffsetAndMetadata(2, "", 3))
        assert read(consumer, 4) == [(offset, 5) for offset in range(4)]


def test_a_broker_that_cannot_say_is_believed(brokers):
    brokers.versions[ApiKey.OFFSET_FOR_LEADER_EPOCH] = (0, 2)
    with consumer_of(brokers) as consumer:
        read(consumer, 10)
        brokers.elect(2, 2)
        brokers.log += [2]
        assert read(consumer, 1) == [(10, 2)]
    assert not brokers.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)


def test_a_position_without_an_epoch_is_not_checked(brokers):
    with consumer_of(brokers) as consumer:
        consumer.seek(T0, 4)
        assert read(consumer, 6)[0] == (4, 1)
    assert not brokers.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)
