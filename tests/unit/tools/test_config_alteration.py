"""The keys and values of `kafka-configs --add-config`, and the entities that the flags name."""

from __future__ import annotations

import pytest

from kafkapy.tools.config_alteration import parse_additions
from kafkapy.tools.config_entity import Entities, InvalidConfig, entities_of
from kafkapy.tools.configs import OPTIONS, check
from kafkapy.tools.option_parser import OptionParser


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1,b=", {"a": "1", "b": ""}),
        ("a=[1,2],b=3", {"a": "1,2", "b": "3"}),
        ("SCRAM-SHA-256=[iterations=8192,password=x]", {"SCRAM-SHA-256": "iterations=8192,password=x"}),
    ],
)
def test_pairs_of_keys_and_values_are_parsed(text: str, expected: dict[str, str]) -> None:
    assert parse_additions(text) == expected


@pytest.mark.parametrize("text", ["a", "a=1,b", "a=1=2"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="Invalid entity config"):
        parse_additions(text)


def entities(words: str) -> Entities:
    return entities_of(OptionParser(OPTIONS).parse(words.split()))


def test_entities_have_the_order_of_their_flags() -> None:
    assert entities("--entity-type users --entity-name a --entity-type clients --entity-default") == (
        ("users", "clients"),
        ("a", ""),
    )
    assert entities("--user a --client-defaults") == (("users", "clients"), ("a", ""))
    assert entities("-t x") == (("topics",), ("x",))
    assert entities("--entity-type brokers") == (("brokers",), ())


def test_only_users_and_clients_may_be_combined() -> None:
    words = "--bootstrap-server a:1 --describe --entity-type {} --entity-type {}"
    assert check(OptionParser(OPTIONS).parse(words.format("users", "clients").split())).types == ("users", "clients")
    with pytest.raises(InvalidConfig, match="may be specified together"):
        check(OptionParser(OPTIONS).parse(words.format("users", "topics").split()))
