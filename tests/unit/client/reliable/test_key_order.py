"""The keys whose records wait in retry topics."""

from __future__ import annotations

from kafkapy.client.reliable.key_order import WaitingKeys

PLACE, OTHER = ("orders", 0), ("orders", 1)


def test_a_record_waits_behind_those_with_its_key_at_higher_levels() -> None:
    keys = WaitingKeys(10)
    keys.change(PLACE, b"a", 2, 1)
    assert [keys.is_behind(PLACE, b"a", level) for level in (0, 1, 2)] == [True, True, False]
    assert not keys.is_behind(PLACE, b"b", 0) and not keys.is_behind(OTHER, b"a", 0)
    assert not keys.is_behind(PLACE, None, 0)


def test_the_last_record_of_a_key_ends_the_wait() -> None:
    keys = WaitingKeys(10)
    for amount in (1, 1, -1):
        keys.change(PLACE, b"a", 1, amount)
    assert keys.is_behind(PLACE, b"a", 0)
    keys.change(PLACE, b"a", 1, -1)
    assert not keys.is_behind(PLACE, b"a", 0)
    assert keys.key_count == 0


def test_at_the_limit_only_known_keys_may_wait() -> None:
    keys = WaitingKeys(2)
    keys.change(PLACE, b"a", 1, 1)
    keys.change(OTHER, b"a", 1, 1)
    assert keys.is_full_for(PLACE, b"b") and keys.is_full_for(("payments", 0), b"a")
    assert not keys.is_full_for(PLACE, b"a") and not keys.is_full_for(PLACE, None)
    keys.forget(OTHER)
    assert not keys.is_full_for(PLACE, b"b")


def test_changes_of_an_aborted_transaction_are_reverted() -> None:
    keys = WaitingKeys(10)
    keys.change(PLACE, b"a", 1, 1)
    keys.confirm()
    keys.change(PLACE, b"a", 1, -1)
    keys.change(PLACE, b"a", 2, 1)
    keys.roll_back()
    assert keys.is_behind(PLACE, b"a", 0) and not keys.is_behind(PLACE, b"a", 1)
    keys.roll_back()
    assert keys.key_count == 1


def test_a_record_that_was_not_counted_leaves_nothing_behind() -> None:
    keys = WaitingKeys(10)
    keys.change(PLACE, b"a", 1, -1)
    keys.change(PLACE, b"a", 0, 1)
    assert keys.key_count == 0 and not keys.is_behind(PLACE, b"a", 0)
