"""Work on the owner's thread: its result, its error, and an owner that has ended."""

from concurrent.futures import CancelledError

import pytest

from kafkapy.server.owner_thread import run_on_owner, run_on_owner_or_here


def post(work):
    work()


def test_returns_the_result():
    assert run_on_owner(lambda: 42, post, lambda: True) == 42


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("slow disk")])
def test_raises_what_the_work_raised(error):
    def fail():
        raise error

    with pytest.raises(type(error), match=str(error)):
        run_on_owner(fail, post, lambda: False)


def test_an_owner_that_has_ended():
    with pytest.raises(CancelledError):
        run_on_owner(lambda: 42, lambda work: None, lambda: False)


def test_without_an_owner_the_work_is_done_here():
    def never(work):
        raise AssertionError("there is nobody to post to")

    assert run_on_owner_or_here(lambda: 42, never, lambda: False) == 42


def test_an_owner_that_ends_before_it_comes_to_the_work():
    alive = [True, False]
    assert run_on_owner_or_here(lambda: 42, lambda work: None, lambda: alive.pop(0)) == 42


def test_an_owner_that_lives_does_the_work():
    posted = []

    def post_and_run(work):
        posted.append(work)
        work()

    assert run_on_owner_or_here(lambda: 42, post_and_run, lambda: True) == 42
    assert len(posted) == 1
