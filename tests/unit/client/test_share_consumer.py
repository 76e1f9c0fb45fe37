"""The share consumer's sessions: what it sends, and what it does after errors, moves and lost connections."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.client import ApiError, TopicPartition, UnreadableRecords
from kafkapy.client.consumer_group import LONGEST_LEAVING_S
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from kafkapy.protocol.messages.share_fetch import ShareFetchResponse
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from tests.harness.client import MemoryBrokers

T0 = TopicPartition("t", 0)
INTERVAL_MS = 500
ACCEPT, RELEASE, REJECT = 1, 2, 3


def batch(offset: int, *values: str) -> bytes:
    builder = RecordBatchBuilder(offset)
    for value in values:
        builder.append(1000, None, value.encode())
    return builder.build()


class ShareBrokers(MemoryBrokers):
    """Brokers that assign partition 0 of topic t and answer each fetch with the next of `replies`.

    A reply is (batches, acquired ranges) or an error of the partition. `refusals`, `ack_errors`: top-level errors of
    fetches, and errors of the partition in responses to ShareAcknowledge, one for each request.
    """

    def __init__(self, *, node_ids: tuple[int, ...] = (1,)) -> None:
        super().__init__(node_ids=node_ids)
        self.topic_id = self.add_topic("t", [(1, 0)])
        self.replies: list[object] = []
        self.refusals: list[Error] = []
        self.ack_errors: list[Error] = []
        self.named_leader = -1
        self.answers |= {
            ApiKey.SHARE_GROUP_HEARTBEAT: self._heartbeat,
            ApiKey.SHARE_FETCH: self._fetch,
            ApiKey.SHARE_ACKNOWLEDGE: self._acknowledge,
        }

    def _heartbeat(self, request, version):
        kind = ShareGroupHeartbeatResponse
        partitions = [kind.TopicPartitions(topic_id=self.topic_id, partitions=[0])]
        return kind(
            member_id=request.member_id,
            member_epoch=max(request.member_epoch, 1) if request.member_epoch >= 0 else request.member_epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=kind.Assignment(topic_partitions=partitions) if request.member_epoch == 0 else None,
        )

    def _fetch(self, request, version):
        kind = ShareFetchResponse
        if self.refusals:
            return kind(error_code=int(self.refusals.pop(0)))
        part = kind.PartitionData(partition_index=0, records=b"")
        if self.replies:
            reply = self.replies.pop(0)
            if isinstance(reply, Error):
                part.error_code = int(reply)
                part.current_leader = kind.LeaderIdAndEpoch(leader_id=self.named_leader, leader_epoch=7)
            else:
                part.records, acquired = reply
                part.acquired_records = [
                    kind.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                    for first, last, count in acquired
                ]
        else:
            self.clock.advance(request.max_wait_ms)
        topic = kind.ShareFetchableTopicResponse(topic_id=self.topic_id, partitions=[part])
        return kind(acquisition_lock_timeout_ms=30000, responses=[topic])

    def _acknowledge(self, request, version):
        kind = ShareAcknowledgeResponse
        error = int(self.ack_errors.pop(0)) if self.ack_errors else 0
        part = kind.PartitionData(partition_index=0, error_code=error)
        part.current_leader = kind.LeaderIdAndEpoch(leader_id=self.named_leader, leader_epoch=7)
        return kind(responses=[kind.ShareAcknowledgeTopicResponse(topic_id=self.topic_id, partitions=[part])])

    def acknowledged(self) -> list[tuple[str, int, list[tuple[int, int, list[int]]]]]:
        """Returns the API, the epoch and the ranges of each request of a session that acknowledges."""
        found = []
        for each in self.asked:
            if each.key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
                ranges = [
                    (one.first_offset, one.last_offset, one.acknowledge_types)
                    for topic in each.request.topics
                    for partition in topic.partitions
                    for one in partition.acknowledgement_batches
                ]
                if ranges:
                    found.append((each.key.name, each.request.share_session_epoch, ranges))
        return found


@pytest.fixture
def brokers():
    harness = ShareBrokers()
    yield harness
    harness.close()


def consumer_of(brokers, **settings):
    made = brokers.share_consumer(group_id="g", value_deserializer="text", **settings)
    made.subscribe("t")
    return made


def test_closing_waits_for_the_response_to_leaving_only_for_some_seconds(brokers):
    consumer = consumer_of(brokers)
    consumer.poll(0.2)
    answer = brokers.answers[ApiKey.SHARE_GROUP_HEARTBEAT]
    brokers.answers[ApiKey.SHARE_GROUP_HEARTBEAT] = lambda request, version: (
        None if request.member_epoch < 0 else answer(request, version)
    )
    began_ms = brokers.clock.monotonic_ms()
    consumer.close(timeout=20)
    fetch_ms = 500  # the fetch that was in flight
    assert brokers.clock.monotonic_ms() - began_ms == 1000 * LONGEST_LEAVING_S + fetch_ms
    assert brokers.of(ApiKey.SHARE_GROUP_HEARTBEAT)[-1].member_epoch == -1


def test_acknowledgements_travel_with_the_next_fetch_or_alone(brokers):
    brokers.replies = [(batch(0, "a", "b", "c"), [(0, 2, 1)]), (batch(3, "d"), [(3, 3, 1)])]
    consumer = consumer_of(brokers)
    assert [record.value for record in consumer.poll(5)] == ["a", "b", "c"]
    assert [record.value for record in consumer.poll(5)] == ["d"]
    assert consumer.commit() == {T0: None}
    consumer.close()
    assert brokers.acknowledged() == [
        ("SHARE_FETCH", 1, [(0, 2, [ACCEPT])]),
        ("SHARE_ACKNOWLEDGE", 2, [(3, 3, [ACCEPT])]),
    ]
    assert [each.share_session_epoch for each in brokers.of(ApiKey.SHARE_ACKNOWLEDGE)] == [2, -1]
    first, *others = brokers.of(ApiKey.SHARE_FETCH)
    assert (first.share_session_epoch, len(first.topics), first.max_records) == (0, 1, 500)
    assert all(not each.topics or each.topics[0].partitions[0].acknowledgement_batches for each in others)
    assert [each.member_epoch for each in brokers.of(ApiKey.SHARE_GROUP_HEARTBEAT)][-1] == -1


def test_closing_sends_the_acknowledgements_that_were_made(brokers):
    brokers.replies = [(batch(0, "a", "b"), [(0, 1, 1)])]
    consumer = consumer_of(brokers, share_acknowledgement_mode="explicit")
    for record in consumer.poll(5):
        consumer.acknowledge(record)
    consumer.close()
    assert brokers.acknowledged() == [("SHARE_ACKNOWLEDGE", -1, [(0, 1, [ACCEPT])])]


def test_only_acquired_records_are_returned_and_missing_ones_are_gaps(brokers):
    whole = batch(0, *"abcdef") + batch(8, "i", "j")
    brokers.replies = [(whole, [(1, 2, 3), (4, 7, 1), (9, 11, 2)])]
    consumer = consumer_of(brokers)
    records = consumer.poll(5)
    assert [(each.offset, each.value, each.delivery_count) for each in records] == [
        (1, "b", 3), (2, "c", 3), (4, "e", 1), (5, "f", 1), (9, "j", 2)
    ]  # fmt: skip
    consumer.commit()
    assert brokers.acknowledged() == [
        ("SHARE_ACKNOWLEDGE", 1, [(1, 2, [ACCEPT]), (4, 7, [ACCEPT, ACCEPT, 0, 0]), (9, 11, [ACCEPT, 0, 0])])
    ]
    consumer.close()


def test_a_damaged_batch_is_rejected_and_the_next_one_is_returned(brokers):
    damaged = bytearray(batch(2, "c", "d"))
    damaged[-1] ^= 1
    brokers.replies = [(batch(0, "a", "b") + bytes(damaged) + batch(4, "e"), [(0, 4, 1)])]
    consumer = consumer_of(brokers)
    assert [record.value for record in consumer.poll(5)] == ["a", "b"]
    with pytest.raises(UnreadableRecords) as raised:
        consumer.poll(5)
    assert (raised.value.partition, raised.value.ranges) == (T0, [(2, 3)])
    assert [record.value for record in consumer.poll(5)] == ["e"]
    consumer.commit()
    consumer.close()
    sent = [one for _, _, ranges in brokers.acknowledged() for one in ranges]
    assert sent == [(0, 1, [ACCEPT]), (2, 3, [REJECT]), (4, 4, [ACCEPT])]


def test_a_commit_is_repeated_after_a_retriable_error(brokers):
    brokers.replies = [(batch(0, "a"), [(0, 0, 1)])]
    brokers.ack_errors = [Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS]
    consumer = consumer_of(brokers)
    assert consumer.poll(5)
    assert consumer.commit() == {T0: None}
    assert [epoch for _, epoch, _ in brokers.acknowledged()] == [1, 2, 3]
    consumer.close()


def test_a_lost_session_fails_the_acknowledgements_and_is_opened_again(brokers):
    brokers.replies = [(batch(0, "a"), [(0, 0, 1)])]
    consumer = consumer_of(brokers)
    results = []
    consumer.set_acknowledgement_commit_callback(lambda offsets, error: results.append((offsets, error.error)))
    assert consumer.poll(5)
    brokers.refusals = [Error.SHARE_SESSION_NOT_FOUND]
    brokers.replies = [(batch(0, "a"), [(0, 0, 2)])]
    assert [record.delivery_count for record in consumer.poll(5)] == [2]
    assert results == [({T0: {0}}, Error.SHARE_SESSION_NOT_FOUND)]
    epochs = [each.share_session_epoch for each in brokers.of(ApiKey.SHARE_FETCH)]
    assert epochs[-3:] == [0, 1, 0] or epochs[-2:] == [1, 0]
    consumer.close()


def test_a_lost_connection_fails_the_acknowledgements(brokers):
    brokers.replies = [(batch(0, "a"), [(0, 0, 1)])]
    consumer = consumer_of(brokers)
    assert consumer.poll(5)
    brokers.breaks = [ApiKey.SHARE_ACKNOWLEDGE]
    (error,) = consumer.commit().values()
    assert error.error is Error.NETWORK_EXCEPTION
    brokers.replies = [(batch(0, "a"), [(0, 0, 2)])]
    assert [record.delivery_count for record in consumer.poll(5)] == [2]
    assert brokers.of(ApiKey.SHARE_FETCH)[-1].share_session_epoch == 0
    consumer.close()


def test_records_are_fetched_from_the_leader_that_an_error_names():
    brokers = ShareBrokers(node_ids=(1, 2))
    brokers.named_leader = 2
    brokers.replies = [Error.NOT_LEADER_OR_FOLLOWER, (batch(0, "a"), [(0, 0, 1)])]
    consumer = consumer_of(brokers)
    assert len(consumer.poll(5)) == 1
    nodes = [each.node_id for each in brokers.asked if each.key is ApiKey.SHARE_FETCH]
    assert nodes[0] == 1 and nodes[-1] == 2
    # The leader moves again: the broker that has delivered the record no longer knows the acquisition.
    brokers.add_topic("t", [(1, 8)])
    brokers.ack_errors = [Error.NOT_LEADER_OR_FOLLOWER]
    (error,) = consumer.commit().values()
    assert error.error is Error.NOT_LEADER_OR_FOLLOWER
    consumer.close()
    brokers.close()


def test_an_error_that_is_not_retried_is_raised_once(brokers):
    brokers.replies = [Error.TOPIC_AUTHORIZATION_FAILED, (batch(0, "a"), [(0, 0, 1)])]
    consumer = consumer_of(brokers)
    with pytest.raises(ApiError, match="Fetching t-0"):
        consumer.poll(5)
    assert len(consumer.poll(5)) == 1
    consumer.close()


def test_a_cluster_without_share_groups_is_named(brokers):
    brokers.versions[ApiKey.SHARE_GROUP_HEARTBEAT] = (0, 0)  # as in Apache Kafka 4.0
    consumer = consumer_of(brokers)
    with pytest.raises(ApiError, match="The cluster does not support the share group protocol"):
        consumer.poll(5)
    consumer.close()


def test_a_member_that_polls_too_late_leaves_and_joins_again(brokers):
    consumer = consumer_of(brokers, max_poll_interval_ms=2000)
    consumer.poll(0.2)
    while -1 not in [each.member_epoch for each in brokers.of(ApiKey.SHARE_GROUP_HEARTBEAT)]:
        consumer._network.wait_until(lambda: False, 0.5)
    brokers.replies = [(batch(0, "a"), [(0, 0, 1)])]
    assert len(consumer.poll(5)) == 1
    assert [each.member_epoch for each in brokers.of(ApiKey.SHARE_GROUP_HEARTBEAT)].count(0) == 2
    consumer.close()
