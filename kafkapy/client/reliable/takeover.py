"""The end of a process whose name another process has taken over.

A service's name is part of its transactional id. When another process starts with the same name, the brokers fence the
producer of the first one. One of the two processes must then end, because otherwise each would again and again make a
new producer, which fences the producer of the other process. If the process is a member of a group, it ends when the
group's coordinator refuses it because of its name; otherwise it ends when its producer is fenced.
"""

from __future__ import annotations

import time

from kafkapy.client.producer import Producer
from kafkapy.errors import ApiError, Error

# Errors by which a group's coordinator tells a static member that another process has its name.
_TAKEN_BY_MEMBER = frozenset((Error.FENCED_INSTANCE_ID, Error.UNRELEASED_INSTANCE_ID))
# Errors by which a coordinator, or the leader of a partition, refuses a producer whose epoch is not the newest.
_FENCED = frozenset((Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH))


class NameTaken(ApiError):
    """Another process uses the same name, so that this process cannot go on.

    The exception has the error code with which the brokers have refused the request.
    """

    def __init__(self, error: Error, name: str) -> None:
        super().__init__(
            error,
            f"Another process uses {name}, so this process ends. Give each process a name of its own ({error.name})",
        )


def check_member(error: Exception, name: str) -> None:
    """Raises NameTaken if `error` says that another static member of the group has the name; otherwise returns.

    `name` describes the name in the message, such as "the name a (--instance) in the group g".
    """
    if isinstance(error, ApiError) and error.error in _TAKEN_BY_MEMBER:
        raise NameTaken(error.error, name) from error


class NamedTransaction:
    """The transactions of a process without a group, and the name that its transactional id is made of. Used by one
    thread.

    The brokers fence a producer in two cases: another process has taken over the name, or the transaction has timed
    out. Only in the second case may the process make another producer. `check` distinguishes them by the transaction's
    age.
    """

    def __init__(self, name: str) -> None:
        """Stores the text that describes the name in a message, such as "the name a (--name) on the host h"."""
        self._name = name
        self._begun_s = 0.0

    def begin(self, producer: Producer) -> None:
        """Begins a transaction of the producer."""
        self._begun_s = time.monotonic()
        producer.begin_transaction()

    def check(self, error: Exception, producer: Producer | None) -> None:
        """Raises NameTaken if `error` fences `producer` although its transaction has not timed out; otherwise returns.

        `producer` is the one in use when `error` was raised, or None if the process had none.
        """
        if producer is None or not isinstance(error, ApiError) or error.error not in _FENCED:
            return
        if (time.monotonic() - self._begun_s) * 1000 < producer.config["transaction.timeout.ms"]:
            raise NameTaken(error.error, self._name) from error
