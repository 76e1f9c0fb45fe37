"""Conversion of values. The messages are those of Apache Kafka 4.3.0 for the same texts."""

import json
from pathlib import Path

import pytest

from kafkapy.config.row import DOUBLE, INT, LIST
from kafkapy.config.table import BROKER_ROWS, TOPIC_ROWS
from kafkapy.config.value import Password, format_value, parse_value, split_list
from kafkapy.errors import ConfigError

FACTS = Path(__file__).parents[2] / "data" / "kafka_config_messages.json"
REFUSED = json.loads(FACTS.read_text())["refused"]


def row_of(name):
    return BROKER_ROWS.get(name) or TOPIC_ROWS[name]


@pytest.mark.parametrize(("name", "text", "message"), REFUSED)
def test_bad_value_is_refused_in_kafkas_words(name, text, message):
    with pytest.raises(ConfigError) as raised:
        parse_value(row_of(name), text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("num.io.threads", " 7 ", 7),
        ("num.io.threads", "+7", 7),
        ("num.io.threads", "007", 7),
        ("log.retention.bytes", "-9223372036854775808", -(2**63)),
        ("auto.create.topics.enable", "TRUE", True),
        ("log.cleanup.policy", "compact , delete", ["compact", "delete"]),
        ("log.cleanup.policy", "", []),
        ("log.cleaner.io.buffer.load.factor", "1f", 1.0),
        ("log.cleaner.io.buffer.load.factor", "1.5e1", 15.0),
        ("log.cleaner.io.buffer.load.factor", ".5D", 0.5),
        ("log.cleaner.io.buffer.load.factor", "0x1p3", 8.0),
        ("group.consumer.migration.policy", "Upgrade", "Upgrade"),
        ("compression.gzip.level", "-1", -1),
        ("leader.replication.throttled.replicas", "*", ["*"]),
        ("leader.replication.throttled.replicas", "0:1,1:2", ["0:1", "1:2"]),
        ("ssl.key.password", "secret", Password("secret")),
    ],
)
def test_texts_are_parsed_to_typed_values(name, text, value):
    assert parse_value(row_of(name), text) == value


@pytest.mark.parametrize("text", ["1_000", "0x10", "1L", "9223372036854775808", "9" * 10_000, "--1", "+", "1 2"])
def test_what_java_does_not_take_for_a_long(text):
    with pytest.raises(ConfigError, match="Not a number of type LONG"):
        parse_value(BROKER_ROWS["log.retention.bytes"], text)


@pytest.mark.parametrize("text", ["1e", "nan", "inf", "1__0", "0x1", "1.5ff", ""])
def test_what_java_does_not_take_for_a_double(text):
    with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
        parse_value(BROKER_ROWS["log.cleaner.io.buffer.load.factor"], text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-2.5e-10, "-2.5E-10"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_double_as_java_writes_it(value, text):
    assert format_value(DOUBLE, value) == text


def test_other_types_as_kafka_writes_them():
    assert format_value(BROKER_ROWS["delete.topic.enable"].type, True) == "true"
    assert format_value(LIST, ["a", "b"]) == "a,b"
    assert format_value(INT, 5) == "5"
    assert format_value(INT, None) is None


def test_a_password_does_not_show():
    password = Password("secret")
    assert "secret" not in f"{password} {password!r}"


def test_split_list_keeps_empty_elements_to_be_refused():
    assert split_list("a,,b") == ["a", "", "b"]
    assert split_list("") == []
