"""Work handed to the owner's thread: its result, its error, and an owner that is gone."""

from concurrent.futures import CancelledError

import pytest

from kafkapy.server.owner_thread import run_on_owner


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
