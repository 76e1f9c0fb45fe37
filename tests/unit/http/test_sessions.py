"""Sessions end by time and by number, and failed logins are limited."""

from __future__ import annotations

from kafkapy.http.sessions import FAILURE_PERIOD_S, MOST_FAILURES, Sessions


class Clock:
    """A clock that moves when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_session_ends_without_requests():
    clock = Clock()
    ended = []
    sessions = Sessions(idle_s=10, longest_s=25, clock=clock, on_end=ended.append)
    session = sessions.begin("ada")
    clock.now_s = 9
    assert sessions.find(session.key) is session
    clock.now_s = 18
    assert sessions.find(session.key) is session
    clock.now_s = 29
    assert sessions.find(session.key) is None
    assert ended == [session]
    assert len(sessions) == 0


def test_a_session_ends_after_its_longest_time():
    clock = Clock()
    sessions = Sessions(idle_s=10, longest_s=15, clock=clock)
    session = sessions.begin("ada")
    for clock.now_s in (6, 12):
        assert sessions.find(session.key) is session
    clock.now_s = 16
    assert sessions.find(session.key) is None


def test_the_session_that_was_not_used_longest_ends_first():
    ended = []
    sessions = Sessions(most=2, on_end=ended.append)
    first, second = sessions.begin("a"), sessions.begin("b")
    assert sessions.find(first.key) is first
    sessions.begin("c")
    assert ended == [second]
    assert sessions.find(first.key) is first


def test_failed_logins_are_limited_for_a_minute():
    clock = Clock()
    sessions = Sessions(clock=clock)
    for _ in range(MOST_FAILURES):
        assert sessions.try_login()
    assert not sessions.try_login()
    clock.now_s = FAILURE_PERIOD_S + 1
    assert sessions.try_login()


def test_logins_that_succeed_are_not_limited():
    sessions = Sessions(clock=Clock())
    for _ in range(3 * MOST_FAILURES):
        assert sessions.try_login()
        sessions.forgive()


def test_a_form_needs_the_token_of_its_session():
    sessions = Sessions()
    one, other = sessions.begin("a"), sessions.begin("b")
    assert one.accepts_form(one.form_token)
    assert not one.accepts_form(other.form_token)
    assert not one.accepts_form("")
    assert not one.accepts_form("ü")
