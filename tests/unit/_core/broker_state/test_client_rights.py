"""The permissions that the gate stores, compared with a set."""

from __future__ import annotations

import random

import pytest

from kafkapy._core.broker_state.client_rights import READ, WRITE, ClientRights

LARGEST_COUNT = 8192


def test_only_what_was_allowed_is_allowed() -> None:
    chance = random.Random(5)
    rights, model = ClientRights(7), set()
    for _ in range(3000):
        topic, operation = chance.randint(1, 2000), chance.choice([READ, WRITE])
        assert rights.allows(topic, operation) == ((topic, operation) in model)
        rights.allow(topic, operation)
        model.add((topic, operation))
    assert all(rights.allows(*each) for each in model)
    assert len(rights) == len({topic for topic, _ in model})


def test_it_is_empty_at_first_and_after_a_renewal() -> None:
    rights = ClientRights(1)
    assert not rights.allows(1, READ)
    assert not rights.may_follow
    rights.allow(1, READ)
    rights.allow_following()
    assert (rights.allows(1, READ), rights.allows(1, WRITE), rights.may_follow) == (True, False, True)
    rights.renew(2)
    assert rights.generation == 2
    assert (rights.allows(1, READ), rights.may_follow, len(rights)) == (False, False, 0)


def test_the_number_of_topics_is_bounded() -> None:
    rights = ClientRights(1)
    for topic in range(1, 3 * LARGEST_COUNT):
        rights.allow(topic, READ)
        assert rights.allows(topic, READ)
    assert len(rights) <= LARGEST_COUNT


@pytest.mark.parametrize(("topic", "operation"), [(0, READ), (-1, READ), (1, 0), (1, 4)])
def test_impossible_permissions_are_refused(topic: int, operation: int) -> None:
    with pytest.raises(ValueError, match="number is positive"):
        ClientRights(1).allow(topic, operation)
