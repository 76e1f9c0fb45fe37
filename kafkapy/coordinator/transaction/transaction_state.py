"""The states of a transactional id and the table of its transitions (Kafka's numbers and names)."""

from __future__ import annotations

from enum import IntEnum


class TransactionState(IntEnum):
    """The states, with their numbers in `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    # This coordinator never enters DEAD and PREPARE_EPOCH_FENCE; they exist because Kafka assigns their numbers.
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name of the state in responses and messages, such as PrepareCommit."""
        return _TITLES[self]


_S = TransactionState
_TITLES = {state: "".join(word.capitalize() for word in state.name.split("_")) for state in TransactionState}
STATES_BY_TITLE = {title: state for state, title in _TITLES.items()}

# The states from which each state may be reached. Only clients of transaction.version 2 may abort when no transaction
# is open.
VALID_PREVIOUS_STATES: dict[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}

# States without an open transaction: a new one may begin, and the id may expire.
RESTING_STATES = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
# States with a durable outcome, whose markers are being written.
PREPARED_STATES = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETED_BY = {_S.PREPARE_COMMIT: _S.COMPLETE_COMMIT, _S.PREPARE_ABORT: _S.COMPLETE_ABORT}
