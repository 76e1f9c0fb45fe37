"""Runs the operations of AdminClient on a few threads, and returns one future for each key of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from kafkapy.client.admin import Results
from kafkapy.client.errors import ClientClosed, RequestTimedOut
from kafkapy.compat.confluent_kafka._errors import kafka_exception, local_error
from kafkapy.errors import KafkapyError

# Operations of one client that run at the same time; the others wait.
_PARALLEL_OPERATIONS = 4


def _converted(error: Exception) -> Exception:
    if isinstance(error, ClientClosed):
        return RuntimeError("Admin client closed")
    if isinstance(error, RequestTimedOut):
        exception: Exception = local_error("_TIMED_OUT", f"Failed while waiting for response from broker: {error}")
    elif isinstance(error, KafkapyError):
        exception = kafka_exception(error)
    else:
        return error
    exception.__cause__ = error
    return exception


class Operations:
    """The threads that run the operations of one client."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_PARALLEL_OPERATIONS, thread_name_prefix="kafkapy-admin")

    def one(self, call: Callable[[], Any]) -> Future[Any]:
        """Runs `call` on a thread, and returns the future of its result or exception."""
        future = _running()

        def run() -> None:
            try:
                result = call()
            except Exception as error:
                future.set_exception(_converted(error))
            else:
                future.set_result(result)

        self._pool.submit(run)
        return future

    def by_key(
        self,
        keys: Iterable[Any],
        call: Callable[[], Results[Any, Any]],
        to_result: Callable[[Any, Any], Any],
        *,
        inner: Callable[[Any], Any] = lambda key: key,
    ) -> dict[Any, Future[Any]]:
        """Returns a future for each of `keys`; runs `call`, which returns kafkapy's results by key, on a thread.

        The result of the future for `key` is `to_result(key, value)`, where `value` is kafkapy's result for
        `inner(key)`.
        """
        futures = {key: _running() for key in keys}

        def run() -> None:
            try:
                results = call()
            except Exception as error:
                for future in futures.values():
                    future.set_exception(_converted(error))
                return
            for key, future in futures.items():
                try:
                    future.set_result(to_result(key, results[inner(key)]))
                except Exception as error:
                    future.set_exception(_converted(error))

        self._pool.submit(run)
        return futures

    def close(self) -> None:
        """Accepts no more operations; the threads end after the operations in progress. Does not block."""
        self._pool.shutdown(wait=False)


def _running() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future
