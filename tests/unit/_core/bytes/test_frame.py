"""The frame splitter agrees with a simple implementation."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy._core.bytes.frame import split_frames
from kafkapy.errors import ProtocolViolation


@given(st.lists(st.binary(max_size=50)), st.integers(min_value=0, max_value=200))
def test_any_prefix_of_a_stream_gives_the_frames_that_are_complete(payloads: list[bytes], cut: int) -> None:
    stream = b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)[:cut]
    expected = []
    pos = 0
    for payload in payloads:
        if pos + 4 + len(payload) > len(stream):
            break
        expected.append((pos + 4, pos + 4 + len(payload)))
        pos += 4 + len(payload)
    assert split_frames(stream, 1000) == (expected, pos)


@pytest.mark.parametrize(("size", "words"), [(-1, "size = -1"), (11, "11 larger than 10"), (2**31 - 1, "larger")])
def test_an_impossible_size_is_a_violation(size: int, words: str) -> None:
    with pytest.raises(ProtocolViolation, match=words):
        split_frames(struct.pack(">i", size), 10)


def test_a_smallest_size_can_be_asked_for() -> None:
    assert split_frames(struct.pack(">i", 0), 10) == ([(4, 4)], 4)
    with pytest.raises(ProtocolViolation):
        split_frames(struct.pack(">i", 7) + b"1234567", 10, min_size=8)
