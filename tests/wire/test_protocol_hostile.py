"""Invalid bytes from a peer: huge lengths allocate no memory, and the only error is ProtocolViolation."""

import random
import tracemalloc

import pytest

from kafkapy._core.bytes.wire import MAX_ELEMENTS, Reader
from kafkapy.errors import ProtocolViolation
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.protocol_messages import MessageMaker, message_class
from tests.reference.wire import facts, message_versions

LARGEST_COUNT = "7fffffff"
LARGEST_COMPACT = "ffffffff0f"
ELEVEN_BYTES = "80" * 10 + "01"


@pytest.mark.parametrize(
    ("message", "version", "data"),
    [
        (ProduceRequest, 3, "ffff ffff 00000bb8" + LARGEST_COUNT),
        (ProduceRequest, 3, "ffff ffff 00000bb8 00000001 0001 61" + LARGEST_COUNT),
        (ProduceRequest, 3, "ffff ffff 00000bb8 00000001 0001 61 00000001 00000000" + LARGEST_COUNT),
        (ProduceRequest, 3, "ffff ffff 00000bb8 00000001 0001 61 00000001 00000000 fffffffe"),
        (ProduceRequest, 9, "00 ffff 00000bb8" + LARGEST_COMPACT),
        (ProduceRequest, 9, "00 ffff 00000bb8 02 02 61 02 00000000" + LARGEST_COMPACT),
        (ProduceRequest, 9, "00 ffff 00000bb8" + ELEVEN_BYTES),
        (ProduceRequest, 9, "00 ffff 00000bb8 01" + LARGEST_COMPACT),  # tag count
        (ProduceRequest, 9, "00 ffff 00000bb8 01 01 64" + LARGEST_COMPACT),  # size of a tagged field
        (ProduceRequest, 9, "00 ffff 00000bb8 00 00"),  # null for an array that cannot be null
        (FetchRequest, 4, "ffffffff 00000064 00000001 00000001 00" + LARGEST_COUNT),
        (FetchRequest, 4, "ffffffff 00000064 00000001 00000001 00 fffffffe"),
        (MetadataRequest, 1, LARGEST_COUNT),
        (MetadataRequest, 9, ELEVEN_BYTES),
        (MetadataRequest, 0, "00000001 fffe"),
        (MetadataRequest, 0, "00000001 0002 c328"),  # not UTF-8
        (MetadataRequest, 0, "00000001 0003 eda080"),  # a lone surrogate
        (ApiVersionsResponse, 3, "0000 80000000" + "00" * 8),
        (CreateTopicsRequest, 2, LARGEST_COUNT),
        (CreateTopicsRequest, 5, LARGEST_COMPACT),
        (RequestHeader, 2, "0000 0009 00000000 7fff"),
        (RequestHeader, 2, "0000 0009 00000000 ffff" + ELEVEN_BYTES),
    ],
)
def test_hostile_length_is_refused_and_costs_nothing(message, version, data):
    data = bytes.fromhex(data)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation):
            message.decode(data, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_number_of_elements_is_bounded():
    """An element takes one byte on the wire and far more in memory, so the sum of all counts is limited."""
    data = (MAX_ELEMENTS + 1).to_bytes(4, "big") + bytes(MAX_ELEMENTS + 1)
    with pytest.raises(ProtocolViolation, match="more than one message may hold"):
        Reader(data).read_int8_array(False, False)
    reader = Reader(bytes.fromhex("00000002 0000 00000002 0000"), max_elements=3)
    assert reader.read_int8_array(False, False) == [0, 0]
    with pytest.raises(ProtocolViolation, match="more than one message may hold"):
        reader.read_array_length(False)


@pytest.mark.parametrize("name", sorted(facts()))
def test_damaged_bytes_decode_or_are_refused(name):
    """A damaged byte, or random bytes, result in a message or in ProtocolViolation."""
    decode = message_class(name).decode
    for version in message_versions(facts()[name]):
        data = MessageMaker(name, version, seed=2).make().encode(version)
        chance = random.Random(f"{name} {version}")
        samples = [chance.randbytes(chance.randrange(60)) for _ in range(20)]
        for position in range(min(len(data), 150)):
            for value in (0x00, 0x7F, 0x80, 0xFF):
                samples.append(data[:position] + bytes([value]) + data[position + 1 :])
        for sample in samples:
            try:
                decode(sample, version)
            except ProtocolViolation:
                continue
