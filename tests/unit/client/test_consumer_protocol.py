"""Encoding and decoding of subscriptions and assignments."""

from __future__ import annotations

import pytest

from kafkapy.client.assignors import COOPERATIVE_STICKY, RANGE, STICKY, GroupMember
from kafkapy.client.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkapy.errors import ProtocolViolation
from kafkapy.types import TopicPartition

OWNED = [TopicPartition("a", 0), TopicPartition("a", 3), TopicPartition("b", 1)]


def test_assignments():
    assert decode_assignment(encode_assignment(OWNED)) == OWNED
    assert decode_assignment(b"") == []


@pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY])
def test_sticky_members_say_what_they_had(assignor):
    data = encode_subscription(assignor, ["b", "a"], OWNED, 4, "")
    assert decode_subscription(assignor, data, "i") == GroupMember(("a", "b"), tuple(OWNED), 4, "i")


def test_others_do_not():
    data = encode_subscription(RANGE, ["a"], OWNED, 4, "rack")
    assert decode_subscription(RANGE, data, None) == GroupMember(("a",), (), 4, None, "rack")


def test_a_member_of_the_first_version():
    # version 0: one topic, no user data
    data = b"\x00\x00" + b"\x00\x00\x00\x01\x00\x01t" + b"\xff\xff\xff\xff"
    assert decode_subscription(RANGE, data, None) == GroupMember(("t",))


def test_bytes_that_are_no_subscription():
    with pytest.raises(ProtocolViolation):
        decode_subscription(RANGE, b"\x00\x03\x00\x00", None)
