"""The periodic tasks of an active controller: they end broker sessions, elect preferred leaders, hold unclean
elections, and remove expired delegation tokens.

Each task is an operation, like a request. The caller gets an operation that is due, runs it, writes its records, and
repeats this until no operation is due. Times are milliseconds of the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.controller.broker_sessions import BrokerSessions
from kafkapy.controller.delegation_tokens import remove_expired_tokens
from kafkapy.controller.elections import balance_leaders, elect_unclean_leaders
from kafkapy.controller.result import ControllerResult, Operation
from kafkapy.controller.settings import ControllerSettings
from kafkapy.metadata.image import MetadataImage
from kafkapy.named_tuple import NamedTuple

# The default of Kafka's internal key unclean.leader.election.interval.ms, which cannot be set here.
UNCLEAN_INTERVAL_MS = 300_000
Election = Callable[[MetadataImage, ControllerSettings], ControllerResult[bool]]


class TaskIntervals(NamedTuple):
    """The intervals of the tasks in milliseconds; None switches a task off.

    `balance_ms` is for the election of preferred leaders, `unclean_ms` for unclean elections, and `token_expiry_ms` for
    the removal of expired delegation tokens.
    """

    balance_ms: int | None
    unclean_ms: int | None
    token_expiry_ms: int | None = None

    @classmethod
    def from_config(cls, config: BrokerConfig) -> TaskIntervals:
        balance_ms = config.leader_imbalance_check_interval_seconds * 1000
        return cls(
            balance_ms if config.auto_leader_rebalance_enable else None,
            UNCLEAN_INTERVAL_MS,
            None if config.delegation_token_secret_key is None else config.delegation_token_expiry_check_interval_ms,
        )


class _Task:
    __slots__ = ("deadline_ms", "election", "interval_ms")

    def __init__(self, election: Election, interval_ms: int, monotonic_ms: int) -> None:
        self.election = election
        self.interval_ms = interval_ms
        self.deadline_ms = monotonic_ms + interval_ms


class PeriodicTasks:
    """The periodic tasks of an active controller, and their deadlines.

    A controller makes this object when it becomes active, and uses it on its own thread only.
    """

    def __init__(
        self,
        sessions: BrokerSessions,
        settings: ControllerSettings,
        intervals: TaskIntervals,
        monotonic_ms: int,
        wall_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """Sets the first deadline of each task to its interval after `monotonic_ms`.

        `wall_ms()` returns the wall-clock time in ms since 1970, by which delegation tokens expire.
        """
        self._sessions = sessions
        self._settings = settings
        wanted: tuple[tuple[Election, int | None], ...] = (
            (balance_leaders, intervals.balance_ms),
            (elect_unclean_leaders, intervals.unclean_ms),
            (lambda image, settings: remove_expired_tokens(image, wall_ms()), intervals.token_expiry_ms),
        )
        self._tasks = [
            _Task(election, interval_ms, monotonic_ms) for election, interval_ms in wanted if interval_ms is not None
        ]

    def next_deadline_ms(self) -> int | None:
        """Returns the monotonic time in ms from which `due` returns an operation.

        Returns None if there are no tasks and no broker sessions.
        """
        deadlines = [task.deadline_ms for task in self._tasks]
        expiry_ms = self._sessions.next_expiry_ms()
        if expiry_ms is not None:
            deadlines.append(expiry_ms)
        return min(deadlines) if deadlines else None

    def due(self, monotonic_ms: int) -> Operation[bool] | None:
        """Returns an operation that is due at `monotonic_ms`, or None if no session has expired and no task is due.

        The caller runs the operation before the next call. An operation fences at most one broker, elects at most 1,000
        leaders, or removes all expired tokens. Its response is True if some of its work may remain; then `due` returns
        an operation for the rest at once.
        """
        expiry_ms = self._sessions.next_expiry_ms()
        if expiry_ms is not None and monotonic_ms >= expiry_ms:
            return lambda image: self._sessions.fence_expired(image, monotonic_ms, self._settings)
        for task in self._tasks:
            if monotonic_ms >= task.deadline_ms:
                return self._election(task, monotonic_ms)
        return None

    def _election(self, task: _Task, monotonic_ms: int) -> Operation[bool]:
        task.deadline_ms = monotonic_ms + task.interval_ms  # also if the election fails

        def elect(image: MetadataImage) -> ControllerResult[bool]:
            result = task.election(image, self._settings)
            if result.response:
                task.deadline_ms = monotonic_ms
            return result

        return elect
