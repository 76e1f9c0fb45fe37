"""ElectLeaders: preferred and unclean elections."""

import pytest

from kafkapy.controller.broker_registration import fence_broker, unfence_broker
from kafkapy.controller.elections import elect_leaders
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.topics_image import RECOVERING
from kafkapy.types import TopicPartition
from tests.harness.metadata import bootstrapped, commit, with_brokers, with_topic

PREFERRED, UNCLEAN = 0, 1
T0 = TopicPartition("t", 0)


def image(elr=True):
    return with_topic(with_brokers(bootstrapped(elr=elr), 1, 2), "t", 1, 2)


def elect(before, kind, *partitions):
    result = elect_leaders(before, kind, list(partitions) or None)
    return commit(before, result), {each: Error(error.error) for each, error in result.response.items()}


def partition_of(image):
    return image.topics.by_name["t"].partitions[0]


def test_preferred_leader_comes_back():
    before = image()
    first = partition_of(before).leader
    down = commit(before, fence_broker(before, first))
    assert partition_of(down).leader not in (first, -1)
    assert elect(down, PREFERRED, T0)[1] == {T0: Error.PREFERRED_LEADER_NOT_AVAILABLE}
    back = commit(down, unfence_broker(down, first))
    in_sync = back.topics.by_name["t"].partitions[0]._replace(isr=(1, 2))
    back.topics.by_name["t"].partitions[0] = in_sync
    after, errors = elect(back, PREFERRED, T0)
    assert errors == {T0: Error.NONE} and partition_of(after).leader == first


def test_not_needed_is_said_only_of_partitions_that_were_named():
    assert elect(image(), PREFERRED, T0)[1] == {T0: Error.ELECTION_NOT_NEEDED}
    assert elect(image(), UNCLEAN, T0)[1] == {T0: Error.ELECTION_NOT_NEEDED}
    assert elect(image(), PREFERRED)[1] == {}


def test_unknown_partitions_and_types():
    unknown = TopicPartition("x", 0), TopicPartition("t", 9)
    result = elect_leaders(image(), PREFERRED, unknown)
    assert [error.message for error in result.response.values()] == ["No such topic as x", "No such partition as t-9"]
    with pytest.raises(ApiError):
        elect_leaders(image(), 2, None)


def test_unclean_election_takes_any_live_replica():
    before = image(elr=False)
    leader = partition_of(before).leader
    other = 3 - leader
    down = commit(before, fence_broker(before, other))
    down = commit(down, fence_broker(down, leader))
    assert partition_of(down).isr == (leader,)
    up = commit(down, unfence_broker(down, other))
    assert partition_of(up).leader == -1
    after, errors = elect(up, UNCLEAN, T0)
    assert errors == {T0: Error.NONE}
    assert (partition_of(after).leader, partition_of(after).isr) == (other, (other,))
    assert partition_of(after).leader_recovery_state == RECOVERING
    assert elect(down, UNCLEAN, T0)[1] == {T0: Error.ELIGIBLE_LEADERS_NOT_AVAILABLE}
