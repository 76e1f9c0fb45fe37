"""Validation of topic names."""

import pytest

from kafkapy.controller.topic_name import collision_key, is_valid_topic_name, validate_topic_name
from kafkapy.errors import ApiError, Error


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * 249, "...", "__consumer_offsets"])
def test_valid_names_are_accepted(name):
    validate_topic_name(name)
    assert is_valid_topic_name(name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("é", "'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_bad_names_in_kafkas_words(name, problem):
    with pytest.raises(ApiError) as raised:
        validate_topic_name(name)
    assert (raised.value.error, raised.value.message) == (
        Error.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}",
    )  # fmt: skip


def test_dots_and_underscores_collide():
    assert collision_key("a.b_c") == collision_key("a_b.c") != collision_key("a-b_c")
