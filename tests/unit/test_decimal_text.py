"""Texts that are numbers, and digits of other scripts, which `str.isdigit` accepts and `int` may not."""

import pytest

from kafkapy.decimal_text import is_integer, is_number


@pytest.mark.parametrize("text", ["0", "7", "00", "9223372036854775808"])
def test_numbers(text):
    assert is_number(text)
    assert is_integer(text)


@pytest.mark.parametrize("text", ["", "²", "1²", "٣", "1_0", " 1", "1\n", "+1", "--1", "-", "1-", "a"])
def test_other_texts(text):
    assert not is_number(text)
    assert not is_integer(text)


def test_a_negative_number_is_an_integer():
    assert is_integer("-15")
    assert not is_number("-15")
