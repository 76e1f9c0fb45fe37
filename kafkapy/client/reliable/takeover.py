"""The end of a process whose name another process has taken over.

A service's name is part of its transactional id. When another process starts with the same name, the brokers fence the
producer of the first one. The first process must then end: a new producer would fence the other process in turn.
"""

from __future__ import annotations

import time

from kafkapy.client.producer import Producer
from kafkapy.errors import ApiError, Error

# Errors by which a coordinator, or the leader of a partition, refuses a producer whose epoch is not the newest.
_FENCED = frozenset((Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH))
# Errors by which a group's coordinator tells a static member that another process has its name.
_TAKEN_BY_MEMBER = frozenset((Error.FENCED_INSTANCE_ID, Error.UNRELEASED_INSTANCE_ID))


class NameTaken(ApiError):
    """Another process uses the same name, so that this one cannot go on. Has the code of the brokers' error."""


class NamedTransaction:
    """The time at which the present transaction of a named process began. Used by one thread.

    The brokers fence a producer in two cases: another process has taken over its name, or its transaction has timed
    out. Only in the second case may the process make another producer. The age of the transaction tells them apart.
    """

    def __init__(self, name: str | None) -> None:
        """`name` is for the message of NameTaken, such as "the instance a of group g"; None for a process without one,
        whose random transactional id no other process can have."""
        self._name = name
        self._begun_s = 0.0

    def begin(self, producer: Producer) -> None:
        """Begins a transaction of the producer."""
        self._begun_s = time.monotonic()
        producer.begin_transaction()

    def check(self, error: Exception, producer: Producer | None) -> None:
        """Raises NameTaken if `error` says that another process has the name; otherwise returns."""
        if self._name is None or not isinstance(error, ApiError):
            return
        is_fenced = False
        if error.error in _FENCED and producer is not None:
            is_fenced = (time.monotonic() - self._begun_s) * 1000 < producer.config["transaction.timeout.ms"]
        if is_fenced or error.error in _TAKEN_BY_MEMBER:
            raise NameTaken(
                error.error,
                f"Another process uses {self._name}, so this process ends. Give each process a name of its own "
                f"({error.error.name})",
            ) from error
