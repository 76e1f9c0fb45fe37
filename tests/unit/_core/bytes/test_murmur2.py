"""murmur2 returns the values of Java's vectors and of a slow implementation."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.murmur2 import murmur2, partition_of_key
from tests.reference import murmur2 as reference

# The values of org.apache.kafka.common.utils.Utils.murmur2.
VECTORS = {
    "21": -973932308,
    "foobar": -790332482,
    "abc": 479470107,
    "": 275646681,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
}
DIGITS = {2: "0101100111", 3: "2022101002", 4: "0303122333"}


@pytest.mark.parametrize("text", VECTORS)
def test_hash_is_that_of_java(text):
    assert murmur2(text.encode()) == VECTORS[text] == reference.murmur2(text.encode())


@settings(deadline=None)
@given(st.binary(max_size=70))
def test_hash_is_that_of_the_slow_reference(data):
    assert murmur2(data) == reference.murmur2(data)
    assert murmur2(bytearray(data)) == murmur2(data)


@pytest.mark.parametrize("count", DIGITS)
def test_partitions_of_digits(count):
    assert "".join(str(partition_of_key(str(key).encode(), count)) for key in range(10)) == DIGITS[count]


def test_a_hundred_keys_over_three_partitions():
    found = Counter(partition_of_key(str(key).encode(), 3) for key in range(100))
    assert [found[0], found[1], found[2]] == [45, 33, 22]


def test_signs_do_not_get_a_partition_each():
    expected = [4, 1, 3, 5, 1, 10, 0, 10, 4, 11, 8, 2]
    assert [partition_of_key(sign.encode(), 12) for sign in "鼠牛虎兔龙蛇马羊猴鸡狗猪"] == expected


def test_a_topic_has_partitions():
    with pytest.raises(ValueError, match="at least one"):
        partition_of_key(b"key", 0)
