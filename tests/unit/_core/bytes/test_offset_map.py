"""Offset map: its size, its limits, and the published vectors of its hash."""

import os
from pathlib import Path

import pytest

from kafkapy._core.bytes.offset_map import ENTRY_BYTES, OffsetMap, siphash

# From the reference implementation of SipHash-2-4 with 128 bits: key 00..0f, data of 0 and 1 bytes.
SECRET = bytes(range(16))
VECTORS = {b"": "a3817f04ba25a8e66df67214c7550293", b"\x00": "da87c1d86b99af44347659119b22fc45"}


@pytest.mark.parametrize("data", VECTORS)
def test_published_vectors(data):
    assert siphash(SECRET, data).hex() == VECTORS[data]


def test_128_mib_hold_5033164_keys():
    offsets = OffsetMap(128 << 20)
    assert ENTRY_BYTES == 24
    assert offsets.capacity == 5_033_164


def test_has_no_memory_before_it_is_cleared():
    offsets = OffsetMap(1 << 20)
    assert not offsets.put(b"key", 1)
    assert offsets.get(b"key") == -1
    offsets.clear()
    assert offsets.put(b"key", 1)
    offsets.release()
    assert offsets.slot_count == 0
    assert offsets.get(b"key") == -1


def test_released_memory_is_given_back():
    def address_space():
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    offsets = OffsetMap(64 << 20)
    before = address_space()
    for _ in range(20):
        offsets.clear()
        assert address_space() >= before + (32 << 20)
        offsets.release()
    assert address_space() < before + (64 << 20)


def test_a_full_map_takes_known_keys_only():
    offsets = OffsetMap(24 * 10)
    offsets.clear()
    for number in range(9):
        assert offsets.put(b"%d" % number, number)
    assert not offsets.put(b"new", 9)
    assert offsets.latest_offset == 8
    assert offsets.put(b"3", 10)
    assert (offsets.get(b"3"), offsets.latest_offset, len(offsets)) == (10, 10, 9)


def test_makes_itself_as_small_as_the_work():
    offsets = OffsetMap(128 << 20)
    offsets.clear(1000)
    assert offsets.slot_count < 1200
    assert all(offsets.put(b"%d" % number, number) for number in range(1000))


@pytest.mark.parametrize(("memory", "load_factor"), [(23, 0.9), (24, 0.9), (1000, 0.0), (1000, 1.0)])
def test_a_map_that_holds_nothing_is_refused(memory, load_factor):
    with pytest.raises(ValueError, match="holds no key"):
        OffsetMap(memory, load_factor)
