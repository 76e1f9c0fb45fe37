"""The commits of confluent-kafka's Consumer. Asynchronous ones wait until the coordinator of the group is known."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable

from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.compat.confluent_kafka._errors import KafkaError, code_of, kafka_error
from kafkapy.compat.confluent_kafka._inner_consumer import InnerConsumer
from kafkapy.compat.confluent_kafka._offsets import partitions_of
from kafkapy.compat.confluent_kafka._records import TopicPartition, with_error
from kafkapy.errors import ApiError, Error, KafkapyError
from kafkapy.types import TopicPartition as Place

Offsets = dict[Place, OffsetAndMetadata]
OnCommit = Callable[[KafkaError | None, list[TopicPartition]], object]

# A commit waits for the coordinator for this time at most.
_LONGEST_POSTPONEMENT_S = 60.0
_POSTPONED = frozenset((Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS))


class Commits:
    """The commits of one consumer. `committed` has the last committed offset of each partition.

    `on_commit` is the program's callback, or None. Its calls are added to `waiting`, which the consumer serves. The
    methods are called while the consumer's lock is held.
    """

    def __init__(self, client: InnerConsumer, on_commit: OnCommit | None, waiting: deque[Callable[[], object]]) -> None:
        self._client = client
        self._on_commit = on_commit
        self._waiting = waiting
        self.committed: Offsets = {}
        # The last offset of each partition with an asynchronous commit that has no outcome yet, and those of these
        # partitions whose outcome does not change `committed`, because they have been given up or assigned again.
        self._latest: Offsets = {}
        self._forgotten: set[Place] = set()
        self._postponed: Offsets = {}
        self._postponed_until_s = 0.0
        self._unanswered = 0  # requests

    def commit(self, offsets: Offsets) -> None:
        """Commits offsets and blocks until they are committed; raises KafkapyError."""
        self._supersede(offsets)
        self._client.commit(offsets)
        self.committed.update(offsets)

    def commit_and_report(self, offsets: Offsets) -> None:
        """Commits offsets and blocks; the outcome, which may be an error, is reported to `on_commit`."""
        try:
            self.commit(offsets)
        except KafkapyError as error:
            self._report(offsets, error)
        else:
            self._report(offsets, None)

    def send(self, offsets: Offsets) -> None:
        """Commits offsets without blocking; the outcome is reported to `on_commit`."""
        self._supersede(offsets)
        self._latest.update(offsets)
        try:
            if self._client.knows_coordinator():
                self._send(offsets)
            else:
                self._postpone(offsets)
        except KafkapyError as error:
            self._supersede(offsets)
            self._report(offsets, error)

    def send_postponed(self) -> None:
        """Sends the commits that wait for the coordinator, if it is known now; fails those that have waited too long.

        Does not block.
        """
        if not self._postponed:
            return
        offsets: Offsets = {}
        try:
            if self._client.knows_coordinator():
                offsets, self._postponed = self._postponed, {}
                self._send(offsets)
            elif time.monotonic() >= self._postponed_until_s:
                raise ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        except KafkapyError as error:
            self._postponed = offsets | self._postponed
            self.drop(tuple(self._postponed), error)

    def finish(self, timeout_s: float) -> None:
        """Sends the postponed commits, and blocks until all commits have an outcome, for `timeout_s` seconds at most.

        The commits that are still postponed then have failed.
        """
        end_s = time.monotonic() + timeout_s
        failure: KafkapyError = ApiError(Error.COORDINATOR_NOT_AVAILABLE)
        try:
            while (self._postponed or self._unanswered) and (left_s := end_s - time.monotonic()) > 0:
                if self._postponed:
                    self._client.await_coordinator(left_s)
                    self.send_postponed()
                self._client.await_commits(max(end_s - time.monotonic(), 0))
        except KafkapyError as error:
            failure = error
        self.drop(tuple(self._postponed), failure)

    def drop(self, places: Collection[Place], error: KafkapyError) -> None:
        """Fails the postponed commits of partitions with an error. Those in flight are not sent again."""
        dropped = {place: self._postponed[place] for place in places if place in self._postponed}
        self._supersede(places)
        if dropped:
            self._report(dropped, error)

    def pending(self, place: Place) -> OffsetAndMetadata | None:
        """Returns the offset of the partition's asynchronous commit that has no outcome yet, or None."""
        return self._latest.get(place)

    def forget(self, places: Iterable[Place] | None) -> None:
        """Removes the committed offsets of partitions (None: of all); later outcomes of commits are only reported."""
        if places is None:
            self.committed.clear()
            self._forgotten.update(self._latest)
            return
        for place in places:
            self.committed.pop(place, None)
            if place in self._latest:
                self._forgotten.add(place)

    def report_nothing(self, partitions: list[TopicPartition]) -> None:
        """Reports to `on_commit` that there is no offset to commit for the partitions."""
        on_commit = self._on_commit
        if on_commit is not None:
            problem = KafkaError(code_of("_NO_OFFSET"))
            self._waiting.append(lambda: on_commit(problem, partitions))

    def _supersede(self, places: Iterable[Place]) -> None:
        """Ends the former commits of partitions: they are not sent again, and their answers are only reported."""
        for place in places:
            self._postponed.pop(place, None)
            self._latest.pop(place, None)
            self._forgotten.discard(place)

    def _send(self, offsets: Offsets) -> None:
        # The client keeps the callback until the next poll, and must not keep a dropped consumer alive.
        reference = weakref.ref(self)

        def done(offsets: Offsets, error: Exception | None) -> None:
            commits = reference()
            if commits is not None:
                commits._answered(offsets, error)

        self._client.commit_async(offsets, done)
        self._unanswered += 1

    def _answered(self, offsets: Offsets, error: Exception | None) -> None:
        self._unanswered -= 1
        latest = {place: offset for place, offset in offsets.items() if self._latest.get(place) == offset}
        if isinstance(error, ApiError) and error.error in _POSTPONED:
            self._postpone(latest)
            offsets = {place: offset for place, offset in offsets.items() if place not in latest}
        else:
            if error is None:
                known = {place: offset for place, offset in latest.items() if place not in self._forgotten}
                self.committed.update(known)
            self._supersede(latest)
        if offsets:
            self._report(offsets, error)

    def _postpone(self, offsets: Offsets) -> None:
        if not self._postponed:
            self._postponed_until_s = time.monotonic() + _LONGEST_POSTPONEMENT_S
        self._postponed.update(offsets)

    def _report(self, offsets: Offsets, error: BaseException | None) -> None:
        on_commit = self._on_commit
        if on_commit is not None:
            problem = None if error is None else kafka_error(error)
            partitions = [with_error(each, problem) for each in partitions_of(offsets)]
            self._waiting.append(lambda: on_commit(problem, partitions))
