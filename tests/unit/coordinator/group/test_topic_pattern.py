"""Expressions in RE2's syntax, compared with Python's engine where the two syntaxes agree."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.coordinator.group import topic_pattern
from kafkapy.coordinator.group.topic_pattern import MAX_EXPRESSION_LENGTH, PatternError, TopicPattern

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "\\w", "-", "_", "\\.", "(?:)", "^", "$", "\\b", "\\B"])


def _grown(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(children, min_size=1, max_size=4).map("".join),
        st.lists(children, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(children, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,}", "*?"])).map(
            lambda both: f"(?:{both[0]}){both[1]}"
        ),
    )


@given(st.recursive(ATOMS, _grown, max_leaves=12), st.lists(st.text("ab.-_1", max_size=12), max_size=8))
def test_it_matches_what_python_matches(expression: str, names: list[str]) -> None:
    pattern, oracle = TopicPattern(expression), re.compile(expression, re.ASCII)
    for name in names:
        if name:  # Topic names are not empty.
            assert pattern.matches(name) == (oracle.fullmatch(name) is not None), (expression, name)


@pytest.mark.parametrize(
    ("expression", "matching", "other"),
    [
        ("orders-[0-9]+", "orders-12", "orders-"),
        ("(?i)Orders", "oRDERS", "order"),
        ("(?i:o)rders", "Orders", "ORDERS"),
        ("a(?i)b", "aB", "AB"),
        ("[[:alpha:]]+", "abc", "a1"),
        ("[[:^digit:]]+", "a-b", "a1"),
        ("\\Qa.b\\E.c", "a.bxc", "axbxc"),
        ("\\x61\\142", "ab", "ba"),
        ("\\p{Lu}\\pN", "A1", "a1"),
        ("\\P{L}", "1", "a"),
        ("a{,5}", "a{,5}", "a"),
        ("(?P<name>a)b", "ab", "b"),
        ("[]a]", "a", "b"),
        ("[a-]+", "a-", "b"),
        ("\\Aab\\z", "ab", "abc"),
        ("[^é]", "a", "ab"),
        ("x*", "xxx", "xa"),
    ],
)
def test_expressions_match_as_in_re2_where_python_differs(expression: str, matching: str, other: str) -> None:
    pattern = TopicPattern(expression)
    assert pattern.matches(matching)
    assert not pattern.matches(other)


@pytest.mark.parametrize(
    "expression",
    [
        "(", ")", "[", "[z-a]", "*", "a**", "a{1001}", "a{3,2}", "\\", "\\8", "\\1", "(?=a)", "(?<!a)", "(?z)",
        "[[:x:]]", "\\pX", "(?P<>a)", "{2}", "a|{1,}",
    ],
)  # fmt: skip
def test_what_re2_refuses_is_refused(expression: str) -> None:
    for refuse in (TopicPattern, TopicPattern.check):
        with pytest.raises(PatternError):
            refuse(expression)


@pytest.mark.parametrize(
    "expression",
    ["a" * (MAX_EXPRESSION_LENGTH + 1), "((a{100}){100}){100}", "(((){1000}){1000}){1000}", "(" * 300 + ")" * 300],
)
def test_what_is_too_large_is_refused_before_it_is_made(expression: str) -> None:
    with pytest.raises(PatternError):
        TopicPattern.check(expression)


def test_the_states_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_pattern, "_MAX_STATES", 3)
    pattern = TopicPattern("(a|b)*a(a|b){4}")
    for name in ("abababab", "bbbbabbbb", "aaaaabbbb", "babbabab"):
        assert pattern.matches(name) == (name[-5] == "a")
        assert len(pattern._states) <= 3


def test_an_expression_that_makes_other_engines_hang() -> None:
    assert not TopicPattern("(a*)*(a|aa)+b").matches("a" * 249)
    assert TopicPattern("(x+x+)+y").matches("x" * 248 + "y")


def test_an_expression_that_costs_too_much_is_given_up() -> None:
    pattern = TopicPattern("(.?){99}(a|b)*c(.?){99}", max_work=1_000)
    with pytest.raises(PatternError):
        pattern.matches("ab" * 100)
