"""Decoders turn any bytes into text, and say why the chosen one failed."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.console.decoders import CHOICES, LARGEST_CONTENT, decode, preview

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("data", "decoder", "text"),
    [
        (b"hello", "text", "hello"),
        (b'{"a": 1}', "json", '{\n  "a": 1\n}'),
        (b"{broken", "text", "{broken"),
        (msgpack.packb({"a": [1, b"\x00"]}), "msgpack", '{\n  "a": [\n    1,\n    "00"\n  ]\n}'),
        (b"\xff\xfe", "hex", "00000000  ff fe                                            .."),
        (b"", "text", ""),
    ],
)
def test_auto_finds_the_format(data, decoder, text):
    decoded = decode(data, "topic")
    assert (decoded.decoder, decoded.text, decoded.failure) == (decoder, text, "")


def test_null_is_not_text():
    assert decode(None, "topic").is_null
    assert preview(None, "topic", "auto", None, 10).is_null


@pytest.mark.parametrize(
    ("wanted", "data", "reason"),
    [
        ("json", b"{", "json: not JSON"),
        ("json", DEEP, "json: JSON that is nested too deeply"),
        ("json", b"[" * 300 + b"]" * 300, "json: the content cannot be shown as JSON: it has more than 200 levels"),
        ("text", b"a\xff", "text: byte 1 is not UTF-8"),
        ("msgpack", b"\xc1", "msgpack: not msgpack"),
        ("coordinator", b"\0\1", "coordinator: topic is not the topic of a coordinator"),
        ("metadata", b"\x09", "metadata: not a record of the metadata log"),
    ],
)
def test_a_decoder_says_why_it_fails(wanted, data, reason):
    assert decode(data, "topic", wanted).failure.startswith(reason)


def test_a_large_value_is_cut():
    decoded = decode(b"x" * (LARGEST_CONTENT + 5), "topic")
    assert len(decoded.text) == LARGEST_CONTENT
    assert "the first" in decoded.failure
    assert len(preview(b"x" * 10_000_000, "topic", "auto", None, 100).text) == 100


@given(
    st.binary(max_size=200),
    st.sampled_from(CHOICES),
    st.sampled_from(["t", "__consumer_offsets", "__cluster_metadata"]),
)
def test_no_content_is_an_error(data, wanted, topic):
    decoded = decode(data, topic, wanted)
    assert isinstance(decoded.text, str)
    assert len(preview(data, topic, wanted, None, 50).text) <= 51


@pytest.mark.parametrize(
    "data",
    [
        b"\x81\x90\xc0",  # a map with an array as its key
        b"\x81\x81\xc0\xc0\xc0",  # a map with a map as its key
        b"\xc7\x0c\xff" + bytes(4) + b"\x7f" * 8,  # a time after the year 9999
        b"\x91\xc7\x0c\xff" + bytes(4) + b"\x80" + bytes(7),
    ],
)
@pytest.mark.parametrize("wanted", ["auto", "msgpack"])
def test_msgpack_that_python_cannot_represent_is_shown_as_bytes(data, wanted):
    assert decode(data, "topic", wanted).decoder == "hex"
    assert preview(data, "topic", wanted, None, 80).text == data.hex()


def test_half_of_a_surrogate_pair_is_shown_as_json_escapes_it():
    text = decode(b'{"a": "\\ud800", "b": "\\u00e4"}', "topic").text
    assert text.encode() == b'{\n  "a": "\\ud800",\n  "b": "\\u00e4"\n}'
