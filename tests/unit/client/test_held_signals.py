"""Signal handlers are deferred until the code that they would interrupt has ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from kafkapy.client import held_signals
from kafkapy.client.held_signals import HELD, HeldSignals


class Interrupted(BaseException):
    """The exception that the handlers of these tests raise."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    def interrupt(number: int, frame: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in HELD}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", HELD)
def test_a_handler_runs_when_it_is_over(number: int) -> None:
    done = []

    def work() -> None:
        with HeldSignals():
            signal.raise_signal(number)
            done.append(number)

    with pytest.raises(Interrupted):
        work()
    assert done == [number]
    with pytest.raises(Interrupted):
        signal.raise_signal(number)


def test_handlers_that_only_tell_are_told_of_every_signal() -> None:
    told: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    with HeldSignals():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert told == []
    assert told == [signal.SIGINT] * 2


def test_one_within_another() -> None:
    over = []

    def work() -> None:
        with HeldSignals():
            with HeldSignals():
                signal.raise_signal(signal.SIGTERM)
            over.append("inner")

    with pytest.raises(Interrupted):
        work()
    assert over == ["inner"]


def test_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with HeldSignals():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_another_thread_has_nothing_to_hold() -> None:
    handlers = []

    def look() -> None:
        with HeldSignals():
            handlers.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [before]


def test_a_handler_that_raises_while_others_are_replaced_leaves_none_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {number: signal.getsignal(number) for number in HELD}
    set_handler = held_signals.set_handler

    def raises_at_the_second(number: int, handler: held_signals.Handler) -> None:
        if number == HELD[1] and handler is not before[number]:
            raise Interrupted(number)
        set_handler(number, handler)

    monkeypatch.setattr(held_signals, "set_handler", raises_at_the_second)
    with pytest.raises(Interrupted):
        HeldSignals().__enter__()
    assert {number: signal.getsignal(number) for number in HELD} == before
