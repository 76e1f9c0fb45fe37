"""Names of partition directories, and the text files in log directories."""

import pytest

from kafkapy.storage.meta_properties import MetaProperties, parse_properties
from kafkapy.storage.partition_directory import (
    is_too_long_to_move,
    parse_directory_name,
    parse_future_name,
    unique_directory_name,
)
from kafkapy.types import TopicPartition, random_uuid, uuid_to_string

UNIQUE = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"t-0.{UNIQUE}-future", TopicPartition("t", 0)),
        (f"a.b-c-12.{UNIQUE}-future", TopicPartition("a.b-c", 12)),
        (f"t-0.{UNIQUE[1:]}-future", None),
        (f"t-0.{UNIQUE}0-future", None),
        (f"t-0.{UNIQUE}-delete", None),
        (f"t-0{UNIQUE}-future", None),
        (f"t.{UNIQUE}-future", None),
        ("t-0", None),
    ],
)
def test_names_of_future_replicas(name, expected):
    assert parse_future_name(name) == expected
    assert parse_directory_name(name) == (TopicPartition("t", 0) if name == "t-0" else None)


def test_a_new_name_can_be_parsed_and_is_unique():
    partition = TopicPartition("topic", 7)
    names = {unique_directory_name(partition, "-future") for _ in range(2)}
    assert len(names) == 2
    assert {parse_future_name(name) for name in names} == {partition}


def test_a_name_that_would_be_too_long_cannot_be_moved():
    assert not is_too_long_to_move(TopicPartition("t" * 213, 0))
    assert len(unique_directory_name(TopicPartition("t" * 213, 0), "-future")) == 255
    assert is_too_long_to_move(TopicPartition("t" * 214, 0))


def test_meta_properties_are_equal_by_all_their_values():
    directory_id = random_uuid()
    properties = MetaProperties("abc", 3, directory_id)
    assert properties == MetaProperties("abc", 3, directory_id, 1)
    for other in (
        MetaProperties("abd", 3, directory_id),
        MetaProperties("abc", 4, directory_id),
        MetaProperties("abc", 3, None),
        MetaProperties("abc", 3, directory_id, 0),
        "abc",
    ):
        assert properties != other
    assert repr(properties) == f"MetaProperties('abc', 3, '{uuid_to_string(directory_id)}', version=1)"
    assert repr(MetaProperties(None, 3, None, 0)) == "MetaProperties(None, 3, None, version=0)"


def test_comments_and_escapes_of_a_properties_file():
    text = "# a=b\n! c=d\n\n  key = value \nurl=http\\://x\\=1\nnothing\nempty=\n"
    assert parse_properties(text) == {"key": "value", "url": "http://x=1", "empty": ""}
