"""What a coordinator operation yields: the records to append and the response that leaves once they are committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kafkapy.errors import Error


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic. `value` None is a tombstone."""

    key: bytes
    value: bytes | None


class CoordinatorResult:
    """Immutable outcome of one operation.

    `response`   goes to the caller when the records are committed; at once when there are none. None: the operation
                 keeps the caller waiting (a join, a sync) and answers through the member it parked.
    `on_append`  is told when the records are committed (NONE) or could not be (the coordinator's error).
    `replay`     False: the operation has already changed the state itself (classic groups, whose members are not in
                 the log before the leader's sync), so the records are for the next loader only.
    `producer`   (producer id, epoch) when the records belong to its transaction, and count with its marker.
    """

    __slots__ = ("on_append", "producer", "records", "replay", "response")

    def __init__(
        self,
        records: Sequence[CoordinatorRecord] = (),
        response: Any = None,
        on_append: Callable[[Error], None] | None = None,
        replay: bool = True,
        producer: tuple[int, int] | None = None,
    ) -> None:
        self.records = records
        self.response = response
        self.on_append = on_append
        self.replay = replay
        self.producer = producer


EMPTY_RESULT = CoordinatorResult()
