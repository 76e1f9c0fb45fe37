"""The checker of histories: it accepts what Kafka may do, and names each broken promise."""

from __future__ import annotations

import pytest

from tests.cluster.history import History, Outcome, Read, Sent, value_of


def log_of(*values: bytes, partition: int = 0) -> list[Read]:
    return [Read("reader", 0, partition, offset, value) for offset, value in enumerate(values)]


def sent(number: int, outcome: Outcome = Outcome.DONE, offset: int = -1, transaction: int | None = None) -> Sent:
    return Sent("p", 0, number, outcome, offset, transaction)


def history_of(*records: Sent, reads: tuple[Read, ...] = (), **transactions: Outcome) -> History:
    history = History()
    history.sent += records
    history.reads += reads
    history.transactions.update({("p", int(number[1:])): outcome for number, outcome in transactions.items()})
    return history


V = [value_of("p", 0, number) for number in range(4)]


@pytest.mark.parametrize(
    ("history", "log"),
    [
        (history_of(sent(0, offset=0), sent(1, offset=1)), log_of(V[0], V[1])),
        (history_of(sent(0), sent(1, Outcome.UNKNOWN), sent(2)), log_of(V[0], V[2])),
        (history_of(sent(0), sent(1, Outcome.UNKNOWN), sent(2)), log_of(V[0], V[1], V[2])),
        (history_of(sent(0, Outcome.NOT_DONE), sent(1)), log_of(V[1])),
        (
            history_of(sent(0, transaction=0), sent(1, transaction=1), t0=Outcome.DONE, t1=Outcome.NOT_DONE),
            log_of(V[0]),
        ),
        (history_of(sent(0, transaction=0), sent(1, transaction=0), t0=Outcome.UNKNOWN), log_of(V[0], V[1])),
        (history_of(sent(0, transaction=0), sent(1, transaction=0), t0=Outcome.UNKNOWN), log_of()),
        (history_of(sent(0), reads=(Read("c", 1, 0, 0, V[0]), Read("c", 2, 0, 0, V[0]))), log_of(V[0])),
    ],
)
def test_what_kafka_may_do_is_accepted(history, log):
    assert history.complaints(log) == []


@pytest.mark.parametrize(
    ("history", "log", "complaint"),
    [
        (history_of(sent(0), sent(1)), log_of(V[0]), "lost: b'p/0/1'"),
        (history_of(sent(0, offset=1)), log_of(V[0]), "moved: b'p/0/0', acknowledged at 0:1, is at ['0:0']"),
        (history_of(sent(0)), log_of(V[0], V[0]), "duplicated: b'p/0/0' is there 2 times"),
        (history_of(sent(0), sent(1)), log_of(V[1], V[0]), "reordered: b'p/0/0' at 0:1 is behind b'p/0/1'"),
        (history_of(sent(0)), log_of(V[0], V[3]), "nobody sent b'p/0/3'"),
        (history_of(sent(0, Outcome.NOT_DONE)), log_of(V[0]), "written although refused: b'p/0/0'"),
        (history_of(sent(0, transaction=7), t7=Outcome.NOT_DONE), log_of(V[0]), "aborted transaction ('p', 7)"),
        (history_of(sent(0, transaction=7), t7=Outcome.DONE), log_of(), "lost: b'p/0/0'"),
        (
            history_of(sent(0, transaction=7), sent(1, transaction=7), t7=Outcome.UNKNOWN),
            log_of(V[0]),
            "torn transaction ('p', 7): 1 of 2",
        ),
        (
            history_of(sent(0), sent(1), reads=(Read("c", 1, 0, 1, V[1]), Read("c", 1, 0, 0, V[0]))),
            log_of(V[0], V[1]),
            "c read 0:0 after 1",
        ),
        (
            history_of(sent(0), sent(1, Outcome.UNKNOWN), reads=(Read("c", 1, 0, 1, V[1]),)),
            log_of(V[0]),
            "c read b'p/0/1' at 0:1, where None is now",
        ),
    ],
)
def test_a_broken_promise_is_named(history, log, complaint):
    assert any(each.startswith(complaint) for each in history.complaints(log)), history.complaints(log)


def test_a_producer_that_is_not_idempotent_may_repeat_itself():
    assert history_of(sent(0), sent(1)).complaints(log_of(V[1], V[0], V[0]), has_duplicates=True) == []
