"""Subscriptions and assignments of classic consumers, in every version."""

from __future__ import annotations

import pytest

from kafkapy.coordinator.group.embedded_protocol import decode_assignment, decode_subscription, encode_assignment
from kafkapy.metadata.topics_image import TopicImage, TopicsImage
from kafkapy.protocol.coordinator_record import encode_coordinator
from kafkapy.protocol.messages.data_records import ConsumerProtocolSubscription

TOPIC = TopicImage("t", b"t" * 16, {})
TOPICS = TopicsImage({"t": TOPIC}, {TOPIC.topic_id: TOPIC})


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_of_every_version(version: int) -> None:
    owned = [ConsumerProtocolSubscription.TopicPartition(topic=name, partitions=[1, 0]) for name in ("t", "gone")]
    said = ConsumerProtocolSubscription(topics=["t", "s", "t"], owned_partitions=owned, rack_id="r")
    found = decode_subscription(encode_coordinator(said, version), TOPICS)
    assert (found.version, found.topics) == (version, ("s", "t"))
    assert found.owned == ({TOPIC.topic_id: frozenset((0, 1))} if version >= 1 else {})
    assert found.rack_id == ("r" if version >= 3 else None)


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    data = encode_coordinator(ConsumerProtocolSubscription(topics=["t"]), 3)
    assert decode_subscription(b"\0\x09" + data[2:] + b"more", TOPICS).topics == ("t",)


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\0\x7f\xff\xff\xff", b"\0\x03\0\0\0\1\0\1"])
def test_what_is_no_subscription(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode_subscription(data, TOPICS)


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_there_and_back(version: int) -> None:
    owned = {TOPIC.topic_id: frozenset((2, 0)), b"x" * 16: frozenset((1,))}
    assert decode_assignment(encode_assignment(owned, version, TOPICS), TOPICS) == {TOPIC.topic_id: frozenset((0, 2))}
    assert decode_assignment(b"", TOPICS) == {}
