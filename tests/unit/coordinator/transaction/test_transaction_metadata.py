"""The next metadata of a transactional id: epochs increase, producer ids are replaced when their epochs are used up,
and states follow the table."""

from __future__ import annotations

import pytest

from kafkapy.coordinator.transaction.transaction_metadata import (
    LAST_CLIENT_EPOCH,
    TransactionMetadata,
    completed,
    fenced,
    initialized,
    prepared,
    takes_new_producer_id,
    with_partitions,
)
from kafkapy.coordinator.transaction.transaction_state import (
    STATES_BY_TITLE,
    VALID_PREVIOUS_STATES,
    TransactionState,
)
from kafkapy.errors import ApiError, Error
from kafkapy.types import TopicPartition

PLACE = frozenset({TopicPartition("t", 0)})
S = TransactionState


def at(state: TransactionState, epoch: int = 0, **fields: object) -> TransactionMetadata:
    return TransactionMetadata(producer_id=7, previous_producer_id=7, producer_epoch=epoch, state=state)._replace(
        **fields  # type: ignore[arg-type]
    )


def test_every_state_is_in_the_table_and_has_kafkas_name() -> None:
    assert set(VALID_PREVIOUS_STATES) == set(S)
    assert [state.title for state in S] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip
    assert STATES_BY_TITLE["PrepareEpochFence"] is S.PREPARE_EPOCH_FENCE


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("previous", S)
def test_only_transitions_of_the_table(previous: TransactionState, state: TransactionState) -> None:
    if previous in VALID_PREVIOUS_STATES[state]:
        assert at(previous).moved_to(state).state is state
    else:
        with pytest.raises(ValueError, match=f"does not go from {previous.title} to {state.title}"):
            at(previous).moved_to(state)


def test_a_transaction_begins_with_its_first_partition() -> None:
    begun = with_partitions(at(S.COMPLETE_COMMIT, start_ms=5), PLACE, 2, 100)
    more = with_partitions(begun, frozenset({TopicPartition("t", 1)}), 2, 200)
    assert (begun.start_ms, more.start_ms, more.last_update_ms) == (100, 100, 200)
    assert len(more.partitions) == 2


def test_the_epoch_rises_at_the_end_for_clients_that_know_it() -> None:
    ongoing = at(S.ONGOING, 3, partitions=PLACE)
    old = prepared(ongoing, commit=True, client_transaction_version=0, next_producer_id=-1, wall_ms=9)
    new = prepared(ongoing, commit=True, client_transaction_version=2, next_producer_id=-1, wall_ms=9)
    assert (old.producer_epoch, new.producer_epoch, new.last_producer_epoch) == (3, 4, 3)
    assert completed(new, 10)._replace(partitions=PLACE) == new._replace(state=S.COMPLETE_COMMIT, last_update_ms=10)


def test_an_id_whose_epochs_are_used_up_hands_over_at_the_end() -> None:
    ongoing = at(S.ONGOING, LAST_CLIENT_EPOCH, partitions=PLACE)
    ending = prepared(ongoing, commit=False, client_transaction_version=2, next_producer_id=8, wall_ms=9)
    assert (ending.producer_id, ending.producer_epoch) == (7, 32767)
    ended = completed(ending, 10)
    assert (ended.producer_id, ended.producer_epoch, ended.last_producer_epoch) == (8, 0, LAST_CLIENT_EPOCH)
    assert (ended.previous_producer_id, ended.next_producer_id) == (7, -1)


def test_an_id_whose_epochs_are_used_up_hands_over_at_the_start() -> None:
    used_up = at(S.COMPLETE_ABORT, LAST_CLIENT_EPOCH)
    assert takes_new_producer_id(used_up, None) and takes_new_producer_id(used_up, LAST_CLIENT_EPOCH)
    again = initialized(used_up, 1000, LAST_CLIENT_EPOCH, 8, 10)
    assert (again.producer_id, again.previous_producer_id) == (8, 7)
    assert (again.producer_epoch, again.last_producer_epoch) == (0, LAST_CLIENT_EPOCH)
    assert initialized(used_up, 1000, None, 8, 10).last_producer_epoch == -1


def test_fencing_takes_the_epoch_above_the_last_one_of_clients() -> None:
    assert fenced(at(S.ONGOING, LAST_CLIENT_EPOCH), 2, 9).producer_epoch == 32767
    assert fenced(at(S.ONGOING, 4), 1, 9)[3:5] == (5, -1)
    assert takes_new_producer_id(at(S.COMPLETE_ABORT, 32767), None)


@pytest.mark.parametrize(
    ("expected", "epoch", "last"), [(None, 6, -1), (5, 6, 5), (4, 5, 4), (3, None, None), (6, None, None)]
)
def test_only_the_current_and_the_last_epoch_may_initialize_again(
    expected: int | None, epoch: int | None, last: int | None
) -> None:
    resting = at(S.EMPTY, 5, last_producer_epoch=4)
    if epoch is None:
        with pytest.raises(ApiError) as raised:
            initialized(resting, 1000, expected, -1, 10)
        assert raised.value.error is Error.PRODUCER_FENCED
    else:
        changed = initialized(resting, 1000, expected, -1, 10)
        assert (changed.producer_epoch, changed.last_producer_epoch) == (epoch, last)
