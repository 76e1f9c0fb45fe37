"""A member of a group of the consumer protocol: the heartbeats that it sends and how it handles the responses."""

from __future__ import annotations

import pytest

from kafkapy.client import SubscriptionPattern, TopicPartition
from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.protocol.messages.list_offsets import ListOffsetsResponse
from kafkapy.protocol.messages.offset_commit import OffsetCommitResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchResponse
from tests.harness.client import MemoryBrokers

INTERVAL_MS = 500
POLL_S = 0.2


class Coordinator(MemoryBrokers):
    """A coordinator that returns `assignment` (topic id -> partitions) once, after all `refusals`."""

    def __init__(self):
        super().__init__()
        self.epoch = 0
        self.assignment = None
        self.refusals = []
        self.t = self.add_topic("t", [(1, 0)] * 3)
        self.answers |= {
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self._heartbeat,
            ApiKey.OFFSET_FETCH: self._offset_fetch,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.FETCH: self._fetch,
            ApiKey.OFFSET_COMMIT: lambda request, version: OffsetCommitResponse(topics=[]),
        }

    def give(self, assignment):
        self.epoch += 1
        self.assignment = assignment

    def _fetch(self, request, version):
        self.clock.advance(50)  # a fetch that waits and returns nothing
        return FetchResponse(responses=[])

    def _heartbeat(self, request, version):
        if self.refusals:
            code, message = self.refusals.pop(0)
            return ConsumerGroupHeartbeatResponse(error_code=int(code), error_message=message)
        if request.member_epoch < 0:
            return ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch)
        given, self.assignment = self.assignment, None
        partitions = ConsumerGroupHeartbeatResponse.TopicPartitions
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=self.epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=None
            if given is None
            else ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[partitions(topic_id=each, partitions=numbers) for each, numbers in given.items()]
            ),
        )

    @staticmethod
    def _offset_fetch(request, version):
        (group,) = request.groups
        topics = [
            OffsetFetchResponse.OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartitions(partition_index=each, committed_offset=-1)
                    for each in topic.partition_indexes
                ],
            )
            for topic in group.topics
        ]
        told = OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)
        return OffsetFetchResponse(groups=[told])

    @staticmethod
    def _list_offsets(request, version):
        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsResponse.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, offset=0, leader_epoch=0
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    @property
    def heartbeats(self):
        return self.of(ApiKey.CONSUMER_GROUP_HEARTBEAT)


class Listener:
    def __init__(self):
        self.heard = []

    def on_partitions_revoked(self, partitions):
        self.heard.append(("-", [each.partition for each in partitions]))

    def on_partitions_assigned(self, partitions):
        self.heard.append(("+", [each.partition for each in partitions]))

    def on_partitions_lost(self, partitions):
        self.heard.append(("!", [each.partition for each in partitions]))


@pytest.fixture
def coordinator():
    harness = Coordinator()
    yield harness
    harness.close()


def consumer_of(coordinator, **settings):
    return coordinator.consumer(
        group_id="g", group_protocol="consumer", auto_offset_reset="earliest", enable_auto_commit=False, **settings
    )


def polled(consumer, is_done, times=50):
    for _ in range(times):
        consumer.poll(POLL_S)
        if is_done():
            return
    raise AssertionError("it never came")


def numbers(consumer):
    return sorted(each.partition for each in consumer.assignment())


def test_the_first_heartbeat_says_all_and_the_next_ones_what_has_changed(coordinator):
    coordinator.give({coordinator.t: [0, 1]})
    with consumer_of(coordinator, client_rack="r", group_remote_assignor="range") as consumer:
        consumer.subscribe(["t"])
        polled(consumer, lambda: numbers(consumer) == [0, 1])
        polled(consumer, lambda: len(coordinator.heartbeats) >= 4)
        first, second, third = coordinator.heartbeats[:3]
        assert (first.member_epoch, first.subscribed_topic_names, first.topic_partitions) == (0, ["t"], [])
        assert (first.rack_id, first.server_assignor, first.rebalance_timeout_ms) == ("r", "range", 300_000)
        assert len(first.member_id) == 22
        (owned,) = second.topic_partitions
        assert (second.member_epoch, owned.topic_id, owned.partitions) == (1, coordinator.t, [0, 1])
        assert second.subscribed_topic_names is None and second.rebalance_timeout_ms == -1
        assert (third.topic_partitions, third.subscribed_topic_names) == (None, None)
        at = [each.at_ms for each in coordinator.asked if each.key == ApiKey.CONSUMER_GROUP_HEARTBEAT]
        assert at[1] - at[0] < INTERVAL_MS <= at[3] - at[2]
    assert coordinator.heartbeats[-1].member_epoch == -1


def test_an_assignment_that_changes_nothing_is_not_reported(coordinator):
    listener = Listener()
    coordinator.give({})
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"], listener)
        polled(consumer, lambda: len(coordinator.heartbeats) >= 2)
        coordinator.give({coordinator.t: [0]})
        polled(consumer, lambda: numbers(consumer) == [0])
        assert listener.heard == [("+", [0])]


def test_what_goes_is_told_before_it_is_confirmed_and_what_stays_stays(coordinator):
    listener = Listener()
    coordinator.give({coordinator.t: [0, 1]})
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"], listener)
        polled(consumer, lambda: numbers(consumer) == [0, 1])
        coordinator.give({coordinator.t: [1, 2]})
        polled(consumer, lambda: numbers(consumer) == [1, 2])
        assert listener.heard == [("+", [0, 1]), ("-", [0]), ("+", [2])]
        polled(consumer, lambda: coordinator.heartbeats[-1].topic_partitions is None)
        told = [each.topic_partitions[0].partitions for each in coordinator.heartbeats if each.topic_partitions]
        assert told == [[0, 1], [1, 2]]
    assert listener.heard[-1] == ("-", [1, 2])


@pytest.mark.parametrize("code", [Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID])
def test_a_member_that_the_group_has_given_up_loses_all_and_joins_again(coordinator, code):
    listener = Listener()
    coordinator.give({coordinator.t: [0]})
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"], listener)
        polled(consumer, lambda: numbers(consumer) == [0])
        polled(consumer, lambda: coordinator.heartbeats[-1].topic_partitions is None)
        count = len(coordinator.heartbeats)
        coordinator.refusals.append((code, None))
        coordinator.give({coordinator.t: [2]})
        polled(consumer, lambda: numbers(consumer) == [2])
        assert listener.heard == [("+", [0]), ("!", [0]), ("+", [2])]
        again = next(each for each in coordinator.heartbeats[count:] if each.member_epoch == 0)
        assert (again.subscribed_topic_names, again.topic_partitions) == (["t"], [])
        assert again.member_id == coordinator.heartbeats[0].member_id


def test_after_an_answer_that_got_lost_all_is_said_again(coordinator):
    coordinator.give({coordinator.t: [0]})
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, lambda: numbers(consumer) == [0])
        polled(consumer, lambda: coordinator.heartbeats[-1].topic_partitions is None)
        coordinator.breaks.append(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        count = len(coordinator.heartbeats)
        polled(consumer, lambda: len(coordinator.heartbeats) >= count + 2)
        lost, again = coordinator.heartbeats[count : count + 2]
        assert lost.subscribed_topic_names is None
        assert (again.member_epoch, again.subscribed_topic_names) == (1, ["t"])
        assert again.topic_partitions[0].partitions == [0]
        assert numbers(consumer) == [0]


def test_topics_whose_name_is_not_known_are_asked_for(coordinator):
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(SubscriptionPattern("n.*"))
        later = coordinator.add_topic("new", [(1, 0)])
        coordinator.give({later: [0], coordinator.t: [1], b"\x09" * 16: [0]})
        polled(consumer, lambda: len(consumer.assignment()) == 2)
        assert consumer.assignment() == {TopicPartition("new", 0), TopicPartition("t", 1)}
        assert coordinator.heartbeats[0].subscribed_topic_regex == "n.*"
        assert coordinator.heartbeats[0].subscribed_topic_names == []


def test_other_topics_are_told_at_once_without_joining_again(coordinator):
    coordinator.give({})
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, lambda: len(coordinator.heartbeats) >= 2)
        coordinator.add_topic("u", [(1, 0)])
        consumer.subscribe(["u"])
        count = len(coordinator.heartbeats)
        consumer.poll(0.01)
        polled(consumer, lambda: len(coordinator.heartbeats) > count)
        assert coordinator.heartbeats[count].subscribed_topic_names == ["u"]
        assert coordinator.heartbeats[count].member_epoch == 1


def test_a_static_member_leaves_for_the_time_being(coordinator):
    coordinator.give({coordinator.t: [0]})
    with consumer_of(coordinator, group_instance_id="i") as consumer:
        consumer.subscribe(["t"])
        polled(consumer, lambda: numbers(consumer) == [0])
    assert (coordinator.heartbeats[0].instance_id, coordinator.heartbeats[-1].member_epoch) == ("i", -2)


def test_who_does_not_poll_leaves_and_comes_back_with_the_next_poll(coordinator):
    listener = Listener()
    coordinator.give({coordinator.t: [0]})
    with consumer_of(coordinator, max_poll_interval_ms=10_000) as consumer:
        consumer.subscribe(["t"], listener)
        polled(consumer, lambda: numbers(consumer) == [0])
        coordinator.clock.advance(10_001)
        consumer.end_offsets([TopicPartition("t", 0)])  # runs the network without polling
        coordinator.give({coordinator.t: [0]})
        polled(consumer, lambda: len(listener.heard) == 3)
        assert listener.heard == [("+", [0]), ("!", [0]), ("+", [0])]
        assert [each.member_epoch for each in coordinator.heartbeats if each.member_epoch <= 0] == [0, -1, 0]


def test_what_cannot_be_repaired_is_raised(coordinator):
    with consumer_of(coordinator) as consumer:
        coordinator.refusals.append((Error.UNSUPPORTED_ASSIGNOR, "no such assignor"))
        consumer.subscribe(["t"])
        with pytest.raises(ApiError, match="no such assignor"):
            polled(consumer, lambda: False)


def test_a_broker_that_does_not_know_the_protocol(coordinator):
    coordinator.versions[ApiKey.CONSUMER_GROUP_HEARTBEAT] = (9, 9)
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(ApiError, match=r"Set group\.protocol=classic"):
            polled(consumer, lambda: False)


def test_a_broker_that_does_not_know_patterns(coordinator):
    coordinator.versions[ApiKey.CONSUMER_GROUP_HEARTBEAT] = (0, 0)
    with consumer_of(coordinator) as consumer:
        consumer.subscribe(SubscriptionPattern("t"))
        with pytest.raises(ApiError, match="regular expressions"):
            polled(consumer, lambda: False)


def test_the_classic_protocol_has_no_patterns_of_the_coordinator(coordinator):
    refused = pytest.raises(ConfigError, match="not supported when using the CLASSIC protocol")
    with coordinator.consumer(group_id="g") as consumer, refused:
        consumer.subscribe(SubscriptionPattern("t"))


def test_positions_are_committed_before_partitions_go(coordinator):
    coordinator.give({coordinator.t: [0, 1]})
    settings = {"group_protocol": "consumer", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 3_600_000}
    with coordinator.consumer(group_id="g", **settings) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, lambda: numbers(consumer) == [0, 1])
        consumer.seek(TopicPartition("t", 0), 3)
        consumer.seek(TopicPartition("t", 1), 4)
        assert not coordinator.of(ApiKey.OFFSET_COMMIT)
        coordinator.give({coordinator.t: [1, 2]})
        polled(consumer, lambda: numbers(consumer) == [1, 2])
        (request,) = coordinator.of(ApiKey.OFFSET_COMMIT)
        (topic,) = request.topics
        assert [(each.partition_index, each.committed_offset) for each in topic.partitions] == [(0, 3), (1, 4)]


def test_commits_carry_the_member_and_its_epoch(coordinator):
    coordinator.give({coordinator.t: [0]})
    with consumer_of(coordinator) as consumer:
        consumer.commit({TopicPartition("t", 0): 5})  # this consumer is not a member
        consumer.subscribe(["t"])
        polled(consumer, lambda: numbers(consumer) == [0])
        consumer.commit({TopicPartition("t", 0): 6})
        outside, inside = coordinator.of(ApiKey.OFFSET_COMMIT)
        assert (outside.member_id, outside.generation_id_or_member_epoch) == ("", -1)
        assert inside.generation_id_or_member_epoch == 1
        assert inside.member_id == coordinator.heartbeats[0].member_id


def test_a_consumer_may_commit_before_it_joins_and_not_after_it_was_fenced(coordinator):
    with coordinator.consumer(group_id="g", group_protocol="consumer", enable_auto_commit=False) as consumer:
        consumer.subscribe(["t"])
        consumer.commit({TopicPartition("t", 0): 5})
        assert [each.generation_id_or_member_epoch for each in coordinator.of(ApiKey.OFFSET_COMMIT)] == [-1]
        coordinator.give({coordinator.t: [0]})
        for _ in range(20):
            consumer.poll(POLL_S)
        assert consumer.assignment()
        coordinator.refusals = [(Error.FENCED_MEMBER_EPOCH, "")]
        for _ in range(10):
            coordinator.clock.advance(INTERVAL_MS)
            consumer.partitions_for("t")
        with pytest.raises(ApiError, match="not part of an active group"):
            consumer.commit({TopicPartition("t", 0): 6})
        assert len(coordinator.of(ApiKey.OFFSET_COMMIT)) == 1
