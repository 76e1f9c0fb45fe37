"""Ids and their text form."""

import pytest

from kafkapy.types import (
    RESERVED_UUIDS,
    ZERO_UUID,
    TopicIdPartition,
    TopicPartition,
    random_uuid,
    uuid_from_string,
    uuid_to_string,
)


def test_uuid_text_form():
    assert uuid_to_string(ZERO_UUID) == "A" * 22
    assert uuid_to_string(b"\xff" * 16) == "_" * 21 + "w"
    assert uuid_from_string("A" * 21 + "Q") == bytes(15) + b"\x01"


def test_uuid_round_trips():
    for _ in range(500):
        uuid = random_uuid()
        text = uuid_to_string(uuid)
        assert len(text) == 22
        assert text[0] != "-"
        assert uuid not in RESERVED_UUIDS
        assert uuid[6] >> 4 == 4
        assert uuid_from_string(text) == uuid


@pytest.mark.parametrize("text", ["", "A", "A" * 21, "A" * 23, "A" * 25, "é" * 22, "A" * 21 + "!"])
def test_bad_uuid_is_refused(text):
    with pytest.raises(ValueError, match="UUID"):
        uuid_from_string(text)


def test_partition_names():
    assert str(TopicPartition("a-b", 3)) == "a-b-3"
    assert TopicIdPartition(ZERO_UUID, "t", 1).topic_partition == TopicPartition("t", 1)
