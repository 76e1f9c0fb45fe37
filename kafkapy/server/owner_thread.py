"""Runs work on the reactor's thread for another thread, which waits for the result."""

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Future

logger = logging.getLogger("kafka.server.KafkaBroker")

# The interval at which the waiting thread checks whether the owner is alive.
LOOK_S = 1.0


def run_on_owner_or_here(
    work: Callable[[], object], post: Callable[[Callable[[], None]], None], is_alive: Callable[[], bool]
) -> object:
    """Runs `work` on the thread that owns the objects it uses (the owner), waits, and returns its result.

    `post(callable)` passes a callable to the owner. If `is_alive()` is False, the owner does not run, and this function
    runs `work` on the calling thread, because no other thread uses the owner's objects.
    """
    if is_alive():
        try:
            return run_on_owner(work, post, is_alive)
        except CancelledError:
            logger.info("The thread that owns the logs has ended: this thread does its work")
    return work()


def run_on_owner(
    work: Callable[[], object], post: Callable[[Callable[[], None]], None], is_alive: Callable[[], bool]
) -> object:
    """Runs `work` on the thread that owns the objects it uses (the owner), waits, and returns its result.

    `post(callable)` passes a callable to the owner. Raises the exception of `work`, or CancelledError if the owner ends
    before `work` is run (`is_alive()` is False). The owner must not call this function.
    """
    future: Future[object] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    post(run)
    while True:
        try:
            return future.result(LOOK_S)
        except TimeoutError:
            owner_is_alive = is_alive()
            if future.done():  # looked at after `is_alive`, because the owner may run the work and end in between
                return future.result()
            if not owner_is_alive:
                raise CancelledError("the thread that owns the logs has ended") from None
