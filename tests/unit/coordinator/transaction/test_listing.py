"""The transactional ids that match a client's expression."""

from __future__ import annotations

import pytest

from kafkapy.coordinator.transaction.listing import keep_matching
from kafkapy.errors import ApiError
from kafkapy.protocol.messages.list_transactions import ListTransactionsResponse

IDS = ["orders-1", "orders-22", "Öl", "öl", "zürich", "путь", "a b"]


def kept(expression: str, ids: list[str]) -> list[str]:
    states = [ListTransactionsResponse.TransactionState(transactional_id=each) for each in ids]
    response = ListTransactionsResponse(transaction_states=states)
    keep_matching(response, expression)
    return [each.transactional_id for each in response.transaction_states]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("orders-[0-9]", ["orders-1"]),
        ("orders-.*", ["orders-1", "orders-22"]),
        (".*", IDS),
        ("..", ["Öl", "öl"]),
        ("öl", ["öl"]),
        ("[öÖ]l", ["Öl", "öl"]),
        ("[^ö]l", ["Öl"]),
        ("z\\x{fc}rich|путь", ["zürich", "путь"]),
        ("[а-я]+", ["путь"]),
        ("[^а-я]+", [each for each in IDS if each != "путь"]),
        ("a\\sb", ["a b"]),
    ],
)
def test_the_whole_id_is_matched(expression: str, expected: list[str]) -> None:
    assert kept(expression, IDS) == expected


@pytest.mark.parametrize("expression", ["(", "a{2,1}", "[z-a]", "a**", "(?=a)", "\\1", "x" * 9000])
def test_an_expression_that_is_none(expression: str) -> None:
    with pytest.raises(ApiError, match="INVALID_REGULAR_EXPRESSION"):
        kept(expression, IDS)


def test_a_hostile_expression_takes_no_longer_than_its_ids() -> None:
    """The expression would take an engine with backtracking exponential time."""
    assert kept("(a*)*(a|aa)+b", ["a" * 2000]) == []
