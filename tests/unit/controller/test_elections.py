"""ElectLeaders: preferred and unclean elections."""

import pytest

from kafkapy.controller.broker_registration import fence_broker, unfence_broker
from kafkapy.controller.elections import balance_leaders, elect_leaders, elect_unclean_leaders
from kafkapy.controller.settings import ControllerSettings
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
    errors = {
        TopicPartition(topic, partition): Error(found.error)
        for topic, results in result.response.items()
        for partition, found in results.items()
    }
    return commit(before, result), errors


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
    assert elect_leaders(image(), PREFERRED, None).response == {"t": {}}


def test_unknown_partitions_and_types():
    unknown = TopicPartition("x", 0), TopicPartition("t", 9)
    result = elect_leaders(image(), PREFERRED, unknown)
    assert result.response["x"][0].message == "No such topic as x"
    assert result.response["t"][9].message == "No such partition as t-9"
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


def test_a_preferred_election_gives_a_partition_without_leader_another_one():
    """Compares with ReplicationControlManager of Apache Kafka 4.3, which reports success then."""
    before = image(elr=False)
    partition = partition_of(before)
    first, second = partition.replicas
    down = commit(before, fence_broker(before, first))
    down.topics.by_name["t"].partitions[0] = partition_of(down)._replace(leader=-1)
    after, errors = elect(down, PREFERRED, T0)
    assert errors == {T0: Error.NONE} and partition_of(after).leader == second


def imbalanced(partitions):
    """Returns partitions whose leader is the second replica, although the preferred one is in sync."""
    before = with_topic(with_brokers(bootstrapped(), 1, 2), "t", partitions, 2)
    topic = before.topics.by_name["t"]
    for number, partition in topic.partitions.items():
        topic.partitions[number] = partition._replace(leader=partition.replicas[1])
    return before


def test_the_task_elects_preferred_leaders_in_batches():
    before = imbalanced(5)
    result = balance_leaders(before, max_elections=3)
    assert result.response and len(result.records) == 3
    after = commit(before, result)
    rest = balance_leaders(after, max_elections=3)
    assert not rest.response and len(rest.records) == 2
    balanced = commit(after, rest)
    assert all(each.leader == each.replicas[0] for each in balanced.topics.by_name["t"].partitions.values())
    assert not balance_leaders(balanced).records


def test_the_task_never_elects_uncleanly():
    before = image(elr=False)
    first, second = partition_of(before).replicas
    down = commit(before, fence_broker(before, second))
    down = commit(down, fence_broker(down, first))
    down = commit(down, unfence_broker(down, second))
    settings = ControllerSettings(unclean_leader_election=True)
    assert not balance_leaders(down, settings).records
    result = elect_unclean_leaders(down, settings)
    assert not result.response and partition_of(commit(down, result)).leader == second
    assert not elect_unclean_leaders(down).records
    assert elect_unclean_leaders(down, settings, max_elections=1).response
