"""The notation: the meaning of each line, and the error for a faulty one."""

import pytest

from kafkapy.protocol.generator_notation import DefinitionError, parse_definition, parse_versions, snake_case

EXAMPLE = """\
# What the messages are for.

ExampleRequest: request 99, versions 0-5, flexible 3+, on broker controller, in kafka-raft, unstable
  served: 2.8.2 0-1, 3.9.1 none, 4.3.0 1-5
  struct Shared 1+
    Id         int32
    OnlyLater  string?     4+   = null
  First        []Shared    1-3
  Second       Shared      4+   tag 0  ignorable   # a comment
  Name         string           null 2+  = ""  key  @topicName
  Payload      bytes            zerocopy  rigid
  Nested       []Inner?    2+   tag 1 in 3+
    Count      int64            = -1
"""


def definition(tmp_path, text):
    path = tmp_path / "example.msg"
    path.write_text(text)
    return parse_definition(path)


def test_a_message_line_is_parsed(tmp_path):
    parsed = definition(tmp_path, EXAMPLE)
    message = parsed.messages[0]
    assert (parsed.name, parsed.about) == ("example", "What the messages are for.")
    assert (message.name, message.kind, message.key) == ("ExampleRequest", "request", 99)
    assert (message.versions, message.flexible, message.first_flexible) == ({0, 1, 2, 3, 4, 5}, {3, 4, 5}, 3)
    assert (message.listeners, message.module, message.unstable) == (["broker", "controller"], "kafka-raft", True)
    assert message.served == {"2.8.2": {0, 1}, "3.9.1": frozenset(), "4.3.0": {1, 2, 3, 4, 5}}


def test_field_lines_are_parsed(tmp_path):
    message = definition(tmp_path, EXAMPLE).messages[0]
    first, second, name, payload, nested = message.root.fields
    assert (first.is_array, first.struct, first.versions) == (True, message.structs["Shared"], {1, 2, 3})
    assert (second.struct, second.tag, second.tagged, second.ignorable) == (first.struct, 0, {4, 5}, True)
    assert (name.nullable, name.default, name.is_key, name.entity) == ({2, 3, 4, 5}, '""', True, "topicName")
    assert (payload.zero_copy, payload.rigid, payload.nullable) == (True, True, frozenset())
    assert (nested.tag, nested.tagged, nested.nullable) == (1, {3, 4, 5}, {2, 3, 4, 5})
    assert [field.default for field in nested.struct.fields] == ["-1"]
    later = first.struct.fields[1]
    assert (later.attribute, later.versions, later.nullable, later.default) == ("only_later", {4, 5}, {4, 5}, "null")


@pytest.mark.parametrize(
    "line",
    [
        "  Name  string  tga 0",
        "  Name  Nowhere",
        "  Name  string  tag",
        "      Name  string",
        "  Name",
    ],
)
def test_wrong_line_is_named(tmp_path, line):
    with pytest.raises(DefinitionError, match=r"example\.msg: line"):
        definition(tmp_path, f"# About.\nExampleRequest: request 99, versions 0\n{line}\n")


def test_unknown_attribute_of_a_message_is_named(tmp_path):
    with pytest.raises(DefinitionError, match="flexibel"):
        definition(tmp_path, "ExampleRequest: request 99, versions 0, flexibel 3+\n  Name string\n")


def test_ranges_of_versions_are_parsed():
    allowed = frozenset(range(10))
    assert parse_versions("7+", allowed) == {7, 8, 9}
    assert parse_versions("0,8+", allowed) == {0, 8, 9}
    assert parse_versions("none", allowed) == frozenset()
    with pytest.raises(DefinitionError):
        parse_versions("3-", allowed)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TransactionalId", "transactional_id"),
        ("isKRaftController", "is_kraft_controller"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("V0Host", "v0_host"),
    ],
)
def test_names_become_snake_case(name, expected):
    assert snake_case(name) == expected
