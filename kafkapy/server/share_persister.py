"""Sends requests to the coordinator of a share partition, on this broker or another one, and repeats failed requests.

Creates `__share_group_state` when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkapy.coordinator.share.share_coordinator import ShareCoordinator
from kafkapy.errors import Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.share.persister import (
    OnDone,
    OnState,
    OnSummary,
    PersistedState,
    Persister,
    SharePartitionKey,
    StateSummary,
    StateWrite,
)

# As in Apache Kafka: five attempts, with pauses of 1 s and longer. The first pauses are shorter here, because a
# coordinator on this broker is usually ready soon after the first request.
MOST_ATTEMPTS = 5
FIRST_STATE_PAUSE_MS = 100
LONGEST_STATE_PAUSE_MS = 30_000
_RETRIABLE = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.BROKER_NOT_AVAILABLE,
        Error.NETWORK_EXCEPTION,
        Error.REQUEST_TIMED_OUT,
    }
)
# Sends a request to the coordinator on the broker with this id, None for this broker; the callback gets the error.
Attempt = Callable[["int | None", OnDone], None]


class RemoteShareCoordinators(Protocol):
    """Sends requests to share coordinators on other brokers."""

    def initialize(
        self, broker_id: int, key: SharePartitionKey, state_epoch: int, start_offset: int, on_done: OnDone
    ) -> None: ...
    def read(self, broker_id: int, key: SharePartitionKey, leader_epoch: int, on_state: OnState) -> None: ...
    def write(self, broker_id: int, key: SharePartitionKey, change: StateWrite, on_done: OnDone) -> None: ...
    def delete(self, broker_id: int, key: SharePartitionKey, on_done: OnDone) -> None: ...
    def summarize(self, broker_id: int, key: SharePartitionKey, on_summary: OnSummary) -> None: ...


class ClusterPersister(Persister):
    """Stores the state of share partitions at their coordinators, on this broker and on others. Only the reactor's
    thread may use it."""

    def __init__(
        self,
        coordinator: ShareCoordinator,
        node_id: int,
        image: Callable[[], MetadataImage],
        schedule: Schedule,
        make_remote: Callable[[], RemoteShareCoordinators],
    ) -> None:
        """`image` returns the present metadata image. `make_remote` is called at the first request to another broker,
        and returns the object that sends requests to all other brokers."""
        self._coordinator = coordinator
        self._node_id = node_id
        self._image = image
        self._schedule = schedule
        self._make_remote = make_remote
        self._remote: RemoteShareCoordinators | None = None
        # Requests the creation of `__share_group_state`; set when the parts of the broker are connected.
        self.create_topic: Callable[[], object] = lambda: None

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, on_done: OnDone) -> None:
        def attempt(broker_id: int | None, done: OnDone) -> None:
            if broker_id is None:
                self._coordinator.initialize(key, state_epoch, start_offset, done)
            else:
                self._remote_coordinators.initialize(broker_id, key, state_epoch, start_offset, done)

        self._attempt_repeatedly(key, attempt, on_done)

    def read(self, key: SharePartitionKey, leader_epoch: int, on_state: OnState) -> None:
        def attempt(broker_id: int | None, done: OnDone) -> None:
            def found(state: PersistedState | None, error: Error) -> None:
                if state is not None:
                    on_state(state, Error.NONE)
                else:
                    done(error, None)

            if broker_id is None:
                self._coordinator.read(key, leader_epoch, lambda state: found(state, Error.NONE), done)
            else:
                self._remote_coordinators.read(broker_id, key, leader_epoch, found)

        self._attempt_repeatedly(key, attempt, lambda error, message: on_state(None, error))

    def write(self, key: SharePartitionKey, change: StateWrite, on_done: OnDone) -> None:
        def attempt(broker_id: int | None, done: OnDone) -> None:
            if broker_id is None:
                self._coordinator.write(key, change, done)
            else:
                self._remote_coordinators.write(broker_id, key, change, done)

        self._attempt_repeatedly(key, attempt, on_done)

    def delete(self, key: SharePartitionKey, on_done: OnDone) -> None:
        def attempt(broker_id: int | None, done: OnDone) -> None:
            if broker_id is None:
                self._coordinator.delete(key, done)
            else:
                self._remote_coordinators.delete(broker_id, key, done)

        self._attempt_repeatedly(key, attempt, on_done)

    def summarize(self, key: SharePartitionKey, on_summary: OnSummary) -> None:
        def attempt(broker_id: int | None, done: OnDone) -> None:
            def found(summary: StateSummary | None, error: Error) -> None:
                if summary is not None:
                    on_summary(summary, Error.NONE)
                else:
                    done(error, None)

            if broker_id is None:
                self._coordinator.summarize(key, lambda summary: found(summary, Error.NONE), done)
            else:
                self._remote_coordinators.summarize(broker_id, key, found)

        self._attempt_repeatedly(key, attempt, lambda error, message: on_summary(None, error))

    @property
    def _remote_coordinators(self) -> RemoteShareCoordinators:
        if self._remote is None:
            self._remote = self._make_remote()
        return self._remote

    def _attempt_repeatedly(self, key: SharePartitionKey, attempt: Attempt, on_done: OnDone, number: int = 1) -> None:
        """Makes an attempt, and repeats it after a pause while it ends with a retriable error.

        The pauses grow. There are at most MOST_ATTEMPTS attempts.

        `attempt(broker_id, done)` sends the request to the coordinator of `key`, and calls `done` with the error and
        its message. `broker_id` is the id of the coordinator's broker, None if it is this broker. `on_done` is called
        once, with the error of the last attempt, NONE after a success, and the error's message. `number` counts the
        attempts from 1.
        """

        def done(error: Error, message: str | None) -> None:
            if error not in _RETRIABLE or number >= MOST_ATTEMPTS:
                on_done(error, message)
                return
            delay_ms = min(FIRST_STATE_PAUSE_MS << 2 * (number - 1), LONGEST_STATE_PAUSE_MS)
            self._schedule(delay_ms, lambda: self._attempt_repeatedly(key, attempt, on_done, number + 1))

        found = self._find(key)
        if isinstance(found, Error):
            done(found, None)
        else:
            attempt(None if found == self._node_id else found, done)

    def _find(self, key: SharePartitionKey) -> int | Error:
        """Returns the id of the broker that coordinates the share partition.

        Returns COORDINATOR_NOT_AVAILABLE if the partition of the state topic has no leader or does not exist; a
        missing topic is created.
        """
        topic = self._image().topics.by_name.get(SHARE_GROUP_STATE_TOPIC)
        if topic is None:
            self.create_topic()
            return Error.COORDINATOR_NOT_AVAILABLE
        partition = topic.partitions.get(self._coordinator.partition_for(key))
        if partition is None or partition.leader == NO_LEADER:
            return Error.COORDINATOR_NOT_AVAILABLE
        return partition.leader
