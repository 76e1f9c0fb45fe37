"""Executes a plan of `balance_plan` by the reassignment API: a few moves at a time, throttled, with progress and
cancellation."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from kafkapy.client.admin import Admin, ElectionType
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.option import ToolError
from kafkapy.tools.reassignment_progress import current_replicas
from kafkapy.tools.reassignment_throttles import clear_throttles, moves_of, throttle_moves
from kafkapy.types import TopicPartition

_PAUSE_S = 0.2
# The longest time that `cancel` waits for the end of the moves.
_CANCELLATION_S = 60.0
# The longest time by which the metadata of a broker may lag behind the controller's.
_METADATA_S = 30.0
Replicas = Mapping[TopicPartition, Sequence[int]]


class Outcome(NamedTuple):
    """The partitions of a plan, divided by the state of their moves; `failed` maps each partition whose move failed to
    the reason. `is_throttled` is True if the throttles that were set for the moves are still set."""

    completed: list[TopicPartition]
    failed: dict[TopicPartition, str]
    cancelled: list[TopicPartition]
    running: list[TopicPartition]
    waiting: list[TopicPartition]
    is_throttled: bool

    def lines(self) -> list[str]:
        """Returns the outcome as lines of text, which together contain every partition of the plan."""
        lines = [f"Completed: {_partitions(self.completed)}"]
        if self.cancelled:
            lines.append(f"Cancelled, with their former replicas: {_partitions(self.cancelled)}")
        if self.running:
            lines.append(f"Still in progress, and no longer monitored: {_partitions(self.running)}")
        if self.waiting:
            lines.append(f"Not begun: {_partitions(self.waiting)}")
        lines += [f"Failed: {partition}: {reason}" for partition, reason in sorted(self.failed.items())]
        if self.is_throttled:
            lines.append(
                "The throttles are still set: kafkapy reassign-partitions --verify, with a file that names these "
                "partitions, removes them when no reassignment is in progress"
            )
        return lines


def _partitions(partitions: Collection[TopicPartition]) -> str:
    shown = f"{len(partitions)} partition{'' if len(partitions) == 1 else 's'}"
    return f"{shown} ({', '.join(map(str, sorted(partitions)))})" if 0 < len(partitions) <= 20 else shown


def next_moves(
    waiting: Sequence[TopicPartition],
    running: Collection[TopicPartition],
    wanted: Replicas,
    current: Replicas,
    most: int,
) -> list[TopicPartition]:
    """Returns the partitions in `waiting` whose moves may begin while the partitions in `running` are being moved.

    `current` and `wanted` have the replicas of each partition before and after its move. Each broker takes part in at
    most `most` moves at a time, as the source or as the target of a replica. A move that only changes the order of a
    partition's replicas copies nothing and is not limited. The result has the order of `waiting`.
    """
    busy: Counter[int] = Counter()
    for partition in running:
        busy.update(_involved(wanted[partition], current[partition]))
    found = []
    for partition in waiting:
        involved = _involved(wanted[partition], current[partition])
        if all(busy[broker] < most for broker in involved):
            busy.update(involved)
            found.append(partition)
    return found


def _involved(wanted: Sequence[int], current: Sequence[int]) -> set[int]:
    return set(wanted) ^ set(current)


class Execution:
    """The execution of one plan: begins its moves, monitors them, and reports their outcome. Not thread-safe."""

    def __init__(
        self, admin: Admin, wanted: Replicas, current: Replicas, most: int, write: Callable[[str], None]
    ) -> None:
        """`wanted` and `current` have the replicas of each partition after and before the plan.

        Each broker takes part in at most `most` moves at a time. `write` prints a line of progress.
        """
        self._admin = admin
        self._wanted = wanted
        self._current = current
        self._most = most
        self._write = write
        self._waiting = sorted(wanted)
        self._running: set[TopicPartition] = set()
        self._completed: list[TopicPartition] = []
        self._cancelled: list[TopicPartition] = []
        self._failed: dict[TopicPartition, str] = {}
        self._throttled: set[str] = set()
        self._ended_s: dict[TopicPartition, float] = {}  # monotonic time at which a move was first seen to have ended

    @property
    def outcome(self) -> Outcome:
        running, is_throttled = sorted(self._running), bool(self._throttled)
        return Outcome(self._completed, self._failed, self._cancelled, running, self._waiting, is_throttled)

    def run(self, rate: int | None) -> None:
        """Carries out the plan, and then elects the preferred leaders. Each broker copies at most `rate` bytes per
        second; None means no limit.

        If an exception such as KeyboardInterrupt ends the call, the moves in progress continue until the caller calls
        `cancel`. Raises ToolError, and begins no move, if the cluster has reassignments in progress already.
        """
        if self._admin.list_partition_reassignments():
            raise ToolError(
                "Reassignments are in progress: wait for them, or cancel them by kafkapy reassign-partitions"
            )
        moved = {key: each for key, each in self._wanted.items() if set(each) != set(self._current[key])}
        if rate is not None and moved:
            self._throttled = {partition.topic for partition in moved}
            throttle_moves(self._admin, moves_of({}, moved, self._current), rate)
        while self._waiting or self._running:
            self._begin_moves()
            if self._collect_ended():
                self._report()
            elif self._running:
                time.sleep(_PAUSE_S)
        self._remove_throttles()
        self._elect()

    def _begin_moves(self) -> None:
        begun = next_moves(self._waiting, self._running, self._wanted, self._current, self._most)
        if not begun:
            return
        self._waiting = [each for each in self._waiting if each not in set(begun)]
        self._running.update(begun)
        results = self._admin.alter_partition_reassignments({each: self._wanted[each] for each in begun})
        for partition, error in results.errors.items():
            self._running.discard(partition)
            self._failed[partition] = error.message or error.error.name
        self._report()

    def _collect_ended(self) -> bool:
        """Removes the moves that have ended from those in progress; returns whether at least one move was removed."""
        gone = self._running - set(self._admin.list_partition_reassignments())
        replicas = current_replicas(self._admin, gone)
        ended = []
        for partition in sorted(gone):
            # The broker that describes the topic may have older metadata than the controller.
            first_s = self._ended_s.setdefault(partition, time.monotonic())
            if tuple(replicas.get(partition, ())) == tuple(self._wanted[partition]):
                self._completed.append(partition)
                ended.append(partition)
            elif time.monotonic() - first_s > _METADATA_S:
                self._failed[partition] = "the topic was deleted, or another client has changed the reassignment"
                ended.append(partition)
        self._running.difference_update(ended)
        return bool(ended)

    def _report(self) -> None:
        done, total = len(self._completed), len(self._wanted)
        self._write(f"{done} of {total} partitions completed, {len(self._running)} in progress")

    def _remove_throttles(self) -> None:
        if self._throttled:
            clear_throttles(self._admin, self._throttled, {each for key in self._wanted for each in self._wanted[key]})
            self._throttled = set()

    def _elect(self) -> None:
        """Elects the first replica of every completed partition as leader."""
        if not self._completed:
            return
        results = self._admin.elect_leaders(ElectionType.PREFERRED, self._completed)
        for partition, error in results.errors.items():
            if error.error is not Error.ELECTION_NOT_NEEDED:
                self._write(f"The preferred leader of {partition} was not elected: {error.message or error.error.name}")

    def cancel(self) -> None:
        """Cancels the moves in progress, waits until they have ended, and removes the throttles.

        Raises ApiError if a reassignment cannot be cancelled, and ToolError if the moves do not end in time.
        """
        cancelled = sorted(self._running)
        if cancelled:
            results = self._admin.alter_partition_reassignments(dict.fromkeys(cancelled))
            for partition, error in results.errors.items():
                if error.error is not Error.NO_REASSIGNMENT_IN_PROGRESS:
                    raise ApiError(error.error, f"The reassignment of {partition} was not cancelled: {error.message}")
            self._await_end()
        self._remove_throttles()

    def _await_end(self) -> None:
        """Waits until each cancelled move has ended, and records the outcome of each move.

        After that a partition has the replicas that it had before the move, or the new replicas if its move was
        completed before the cancellation. A cancellation restores the set of replicas, but not always their order,
        which determines the preferred leader; a reassignment then restores the former order. Raises ToolError if the
        moves do not end in time.
        """
        deadline_s = time.monotonic() + _CANCELLATION_S
        while True:
            replicas = current_replicas(self._admin, self._running)
            for partition in sorted(self._running):
                found = tuple(replicas.get(partition, ()))
                if found == tuple(self._wanted[partition]):
                    self._completed.append(partition)
                elif found == tuple(self._current[partition]):
                    self._cancelled.append(partition)
                elif set(found) == set(self._current[partition]):
                    self._admin.alter_partition_reassignments({partition: self._current[partition]})
                    continue
                else:
                    continue
                self._running.discard(partition)
            if not self._running:
                return
            if time.monotonic() > deadline_s:
                raise ToolError("The cancelled reassignments have not ended: see kafkapy reassign-partitions --list")
            time.sleep(_PAUSE_S)
