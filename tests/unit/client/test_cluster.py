"""The view of the cluster: addresses, merged metadata, and leaders that are accepted or ignored."""

from __future__ import annotations

import pytest

from kafkapy.client.cluster import Node, bootstrap_cluster, merge, parse_addresses, with_leader
from kafkapy.errors import ConfigError, Error
from kafkapy.protocol.messages.metadata import MetadataResponse
from kafkapy.types import TopicPartition

ID, OTHER_ID = b"1" * 16, b"2" * 16


def answer(leader=1, epoch=5, topic_id=ID, error=0, name="t"):
    partition = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    topic = MetadataResponse.MetadataResponseTopic(
        name=name, topic_id=topic_id, error_code=error, partitions=[] if error else [partition]
    )
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=each, host="h", port=each) for each in (1, 2)]
    return MetadataResponse(brokers=brokers, topics=[topic], controller_id=1, cluster_id="c")


@pytest.fixture
def known():
    return merge(bootstrap_cluster([("a", 1)]), answer(), False)


def test_addresses():
    assert parse_addresses(["a:1", "[::1]:2"]) == [("a", 1), ("::1", 2)]
    for bad in ("a", ":1", "a:x", "a:0", "a:65536"):
        with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
            parse_addresses([bad])


def test_before_an_answer_there_are_addresses_only():
    assert bootstrap_cluster([("a", 1), ("b", 2)]).nodes == {-1: Node(-1, "a", 1), -2: Node(-2, "b", 2)}


def test_an_answer(known):
    assert set(known.nodes) == {1, 2}
    assert known.leader("t", 0) == 1
    assert (known.leader("t", 1), known.leader("u", 0)) == (-1, -1)
    assert known.topic_of_id(ID) == "t" and known.topic_of_id(OTHER_ID) is None


@pytest.mark.parametrize("number", [-1, 2**24, 2**31 - 1])
def test_an_impossible_partition_number_is_ignored(number):
    response = answer()
    response.topics[0].partitions.append(
        MetadataResponse.MetadataResponsePartition(partition_index=number, leader_id=1, leader_epoch=5)
    )
    assert len(merge(bootstrap_cluster([("a", 1)]), response, False).topics["t"].partitions) == 1


def test_an_older_epoch_is_not_believed_except_of_a_topic_made_anew(known):
    assert merge(known, answer(leader=2, epoch=4), False).leader("t", 0) == 1
    assert merge(known, answer(leader=2, epoch=6), False).leader("t", 0) == 2
    assert merge(known, answer(leader=2, epoch=0, topic_id=OTHER_ID), False).leader("t", 0) == 2


def test_topics_stay_unless_all_were_asked_for(known):
    assert set(merge(known, answer(name="u"), False).topics) == {"t", "u"}
    assert set(merge(known, answer(name="u"), True).topics) == {"u"}


def test_a_topic_that_is_gone(known):
    gone = merge(known, answer(error=3), False)
    assert gone.topics == {} and gone.errors == {"t": Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert merge(gone, answer(), False).errors == {}
    assert merge(known, answer(error=5), False).topics == known.topics


def test_a_leader_without_a_known_broker_is_none(known):
    assert merge(known, answer(leader=9, epoch=6), False).leader("t", 0) == -1


def test_hints_of_newer_epochs_are_taken(known):
    where = TopicPartition("t", 0)
    assert with_leader(known, where, 3, 6, [Node(3, "n", 3)]).leader("t", 0) == 3
    assert with_leader(known, where, 3, 5, [Node(3, "n", 3)]) is known
    assert with_leader(known, TopicPartition("t", 7), 3, 6, []) is known
