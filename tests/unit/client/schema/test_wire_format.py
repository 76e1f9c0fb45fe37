"""The frames of registries' serializers."""

from __future__ import annotations

import pytest

from kafkapy.client.schema.errors import WrongFrame
from kafkapy.client.schema.wire_format import (
    Frame,
    decode_indexes,
    encode_indexes,
    frame_prefix,
    guid_header,
    read_frame,
)

GUID = "89791762-2336-4186-9674-299b90a802e2"


def test_a_prefix_is_a_zero_and_the_id():
    assert frame_prefix(258) == b"\0\0\0\1\2"
    assert read_frame(b"\0\0\0\1\2data", "value") == Frame(258, None, 5)


@pytest.mark.parametrize(
    ("indexes", "encoded"),
    [((0,), b"\0"), ((1,), b"\2\2"), ((0, 0), b"\4\0\0"), ((1, 0, 70), b"\6\2\0\x8c\1")],
)
def test_message_indexes_are_zigzag_varints(indexes, encoded):
    assert encode_indexes(indexes) == encoded
    assert decode_indexes(encoded + b"more", 0) == (indexes, len(encoded))


def test_a_header_names_the_schema_by_its_guid():
    headers = [("other", b"x"), ("__value_schema_id", guid_header(GUID))]
    assert read_frame(b"data", "value", headers) == Frame(None, GUID, 0)
    with pytest.raises(WrongFrame):
        read_frame(b"data", "key", headers)
    with pytest.raises(WrongFrame, match="bytes instead of"):
        read_frame(b"data", "value", [("__value_schema_id", b"\1short")])


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", b"\1\0\0\0\1data", b'{"a": 1}'])
def test_other_bytes_are_refused(data):
    with pytest.raises(WrongFrame, match="do not begin with"):
        read_frame(data, "value")


@pytest.mark.parametrize("data", [b"", b"\xff" * 9, b"\xff\xff\1", b"\3", b"\4\2"])
def test_damaged_message_indexes_are_refused(data):
    with pytest.raises(WrongFrame):
        decode_indexes(data, 0)
