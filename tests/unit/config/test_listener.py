"""Listener lists: parsing, security protocols, and distinct names and ports."""

import pytest

from kafkapy.config.listener import Listener, check_distinct, parse_listeners, parse_protocol_map
from kafkapy.errors import ConfigError

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "INSIDE": "PLAINTEXT", "SSL": "SSL"}


@pytest.mark.parametrize(
    ("endpoint", "listener"),
    [
        ("PLAINTEXT://localhost:9092", ("PLAINTEXT", "PLAINTEXT", "localhost", 9092)),
        ("PLAINTEXT://:9092", ("PLAINTEXT", "PLAINTEXT", "", 9092)),
        ("inside://127.0.0.1:0", ("INSIDE", "PLAINTEXT", "127.0.0.1", 0)),
        ("SSL://[::1]:9093", ("SSL", "SSL", "::1", 9093)),
        ("INSIDE://[fe80::1%eth0]:9093", ("INSIDE", "PLAINTEXT", "fe80::1%eth0", 9093)),
    ],
)
def test_endpoints_are_parsed(endpoint, listener):
    assert parse_listeners("listeners", [endpoint], PROTOCOLS) == [Listener(*listener)]


@pytest.mark.parametrize(
    "endpoint",
    ["localhost:9092", "PLAINTEXT://h", "PLAINTEXT://h:x", "PLAINTEXT://h:65536", "://h:1", "PLAINTEXT://a b:1"],
)
def test_malformed_endpoints_are_refused(endpoint):
    with pytest.raises(ConfigError, match="Unable to parse"):
        parse_listeners("listeners", [endpoint], PROTOCOLS)


def test_a_name_without_protocol():
    with pytest.raises(ConfigError, match="No security protocol defined for listener OUTSIDE"):
        parse_listeners("listeners", ["OUTSIDE://h:1"], PROTOCOLS)


def test_text_form_reads_back():
    for text in ("INSIDE://[::1]:1", "PLAINTEXT://:2", "SSL://h:3"):
        assert [str(each) for each in parse_listeners("listeners", [text], PROTOCOLS)] == [text]


def listeners(*texts):
    return parse_listeners("listeners", texts, {**PROTOCOLS, "A": "PLAINTEXT", "B": "PLAINTEXT", "C": "PLAINTEXT"})


def test_names_and_ports_are_distinct():
    with pytest.raises(ConfigError, match="different name"):
        check_distinct("listeners", listeners("A://h:1", "A://h:2"), ports=True)
    with pytest.raises(ConfigError, match="different port"):
        check_distinct("listeners", listeners("A://h:1", "B://h:1"), ports=True)
    check_distinct("listeners", listeners("A://h:0", "B://h:0"), ports=True)
    check_distinct("listeners", listeners("A://h:1", "B://h:1"), ports=False)


def test_a_port_of_both_address_families():
    check_distinct("listeners", listeners("A://127.0.0.1:1", "B://[::1]:1"), ports=True)
    with pytest.raises(ConfigError, match="different port"):
        check_distinct("listeners", listeners("A://127.0.0.1:1", "B://[::1]:1", "C://[::2]:1"), ports=True)


DEFAULT_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"


def protocols_of(text, *, is_default, names=(), controllers=("CONTROLLER",)):
    return parse_protocol_map(text, is_default=is_default, listener_names=names, controller_names=controllers)


def test_controller_listener_is_plaintext_by_default_only():
    assert protocols_of(DEFAULT_MAP, is_default=True)["CONTROLLER"] == "PLAINTEXT"
    assert "CONTROLLER" not in protocols_of(DEFAULT_MAP, is_default=False)
    assert "CONTROLLER" not in protocols_of(DEFAULT_MAP, is_default=True, names=["SSL"])


@pytest.mark.parametrize("text", ["A", "A:TCP", ":SSL", "A:SSL,a:SSL"])
def test_bad_protocol_map(text):
    with pytest.raises(ConfigError, match=r"listener\.security\.protocol\.map"):
        protocols_of(text, is_default=False)
