"""The decisions of one fetcher, which reads partitions from one leader (Kafka's AbstractFetcherThread).

A fetcher reads and writes the logs of its partitions, but uses neither the network nor a clock: every method gets the
time as `monotonic_ms`. The caller sends the request that `next_request` returns, one at a time, and passes the response
to `on_fetched` or `on_offsets`, or calls `on_failure`.

A follower that is far behind sends its next Fetch before it appends the records of the last response, so that the
leader works while the follower writes. A Fetch acknowledges every record below its offset. Sending ahead is therefore
allowed only if the offset is below the leader's high watermark: the records below it are committed without this
follower, and a follower cannot enter the ISR with an offset below the high watermark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkapy._core.gate.follower_append import end_of_fetched
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.replica.fetcher.fetch_session import FetchPlan, FetchSession
from kafkapy.replica.fetcher.followed_partition import (
    NOT_DELAYED,
    FetchPosition,
    FollowedPartition,
    FollowerLog,
    Phase,
    truncation_offset,
)
from kafkapy.replica.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kafkapy.storage.leader_epoch_cache import UNDEFINED_EPOCH
from kafkapy.types import OffsetAndEpoch, TopicPartition

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")

# The back-off after the first of several transient errors; it doubles up to `replica.fetch.backoff.ms`. The usual cause
# is an election of which the follower learns before the leader, which should not cost a whole back-off of one second.
FIRST_RETRY_MS = 50
# The number of retries that do not wait for the response to a Fetch that the leader holds.
URGENT_RETRIES = 4
# The longest wait until a throttle is read again; its rate may have been increased.
LONGEST_THROTTLE_MS = 1000
# Errors that a change of the metadata ends; the partition is fetched again after a back-off.
_TRANSIENT = frozenset(
    {
        Error.UNKNOWN_LEADER_EPOCH,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.INCONSISTENT_TOPIC_ID,
    }
)
# Damage in the leader's bytes may be transient, for example if it truncates its log while it sends the response.
_DAMAGE = frozenset({Error.CORRUPT_MESSAGE, Error.INVALID_RECORD})


class OffsetQuery(NamedTuple):
    """The contents of one ListOffsets request: the leader epoch of each partition, and the special timestamp that
    stands for the end or the start of the leader's log."""

    timestamp: int  # LATEST_TIMESTAMP or EARLIEST_TIMESTAMP
    leader_epochs: dict[TopicPartition, int]


class LeaderOffset(NamedTuple):
    """The leader's response to an OffsetQuery for one partition."""

    error: Error
    offset: int


# A partition, and its part of a response.
Answer = tuple[FollowedPartition, FetchResponse.PartitionData]


class LeaderFetcher:
    """Owns the states of its partitions and the fetch session. Used only by the thread that owns it.

    Invariant: `_changed` contains every partition whose position may differ from the last position in a planned
    request.
    """

    def __init__(self, backoff_ms: int) -> None:
        self.partitions: dict[TopicPartition, FollowedPartition] = {}
        self.fetched_bytes = 0
        self._backoff_ms = backoff_ms
        self._session = FetchSession()
        self._changed: dict[TopicPartition, None] = {}
        self._delayed: dict[TopicPartition, None] = {}
        self._next_delay_ends_ms = NOT_DELAYED
        self._truncating: dict[TopicPartition, None] = {}
        self._asking: dict[TopicPartition, None] = {}
        self._throttled: dict[TopicPartition, None] = {}  # partitions whose log has a throttle
        self._withheld_until_ms = NOT_DELAYED  # the first throttled partition may be fetched then
        self._now_ms = 0  # the time of the request that is planned
        self._topics: dict[bytes, str] = {}
        self._advanced: list[TopicPartition] = []

    # -- partitions ----------------------------------------------------------------------------------------------

    def follow(
        self, topic_partition: TopicPartition, topic_id: bytes, leader_epoch: int, log: FollowerLog
    ) -> FollowedPartition:
        """Starts to fetch a partition, and returns its state. If the partition is fetched already, begins again with a
        new state if the leader epoch or the topic id has changed, and otherwise changes nothing."""
        known = self.partitions.get(topic_partition)
        if known is not None and known.leader_epoch == leader_epoch and known.topic_id == topic_id:
            return known
        self.release(topic_partition)
        state = FollowedPartition(topic_partition, topic_id, leader_epoch, log)
        self.partitions[topic_partition] = state
        self._topics[topic_id] = topic_partition.topic
        if state.phase is Phase.TRUNCATING:
            self._truncating[topic_partition] = None
        self._changed[topic_partition] = None
        if log.throttle is not None:
            self._throttled[topic_partition] = None
        return state

    def follow_throttles(self) -> None:
        """Determines again which partitions are throttled, after a change of the topics' configuration."""
        before = self._throttled
        self._throttled = {each: None for each, state in self.partitions.items() if state.log.throttle is not None}
        self._changed.update((each, None) for each in before if each not in self._throttled)

    def release(self, topic_partition: TopicPartition) -> None:
        """Stops fetching a partition. The response to a request that was sent already no longer changes its log."""
        if self.partitions.pop(topic_partition, None) is None:
            return
        self._changed[topic_partition] = None
        for waiting in (self._delayed, self._truncating, self._asking, self._throttled):
            waiting.pop(topic_partition, None)
        if len(self._topics) > 2 * len(self.partitions) + 16:
            self._topics = {state.topic_id: name.topic for name, state in self.partitions.items()}

    # -- requests ------------------------------------------------------------------------------------------------

    def next_request(self, monotonic_ms: int) -> FetchPlan | OffsetQuery | None:
        """Returns the contents of the next request.

        Returns None if every partition is stopped, or is delayed or withheld by a throttle until `next_deadline_ms` or
        later.
        """
        self._end_delays(monotonic_ms)
        self._truncate_to_high_watermarks()
        if self._asking:
            query = self._offset_query()
            if query is not None:
                return query
        self._now_ms = monotonic_ms
        return self._plan([], self._position_of)

    def _plan(
        self, moved: list[TopicPartition], position_of: Callable[[TopicPartition], FetchPosition | None]
    ) -> FetchPlan | None:
        """Returns the plan of the next Fetch, or None if there is nothing to fetch.

        `moved` are partitions that may have changed in addition to those in `_changed`. `position_of` returns the
        position to fetch from, or None for a partition that is not to be fetched.
        """
        self._withheld_until_ms = NOT_DELAYED
        changed = self.partitions if self._session.is_full else self._changed
        plan = self._session.plan([*changed, *moved, *self._throttled], position_of)
        self._changed.clear()
        return plan

    def next_deadline_ms(self) -> int | None:
        """Returns the monotonic time in milliseconds at which the next delay of a partition ends, or a throttle permits
        the next request; None if no partition is delayed or withheld by a throttle.
        """
        ends_ms = [self._next_delay_ends_ms] if self._delayed else []
        if self._withheld_until_ms != NOT_DELAYED:
            ends_ms.append(self._withheld_until_ms)
        return min(ends_ms, default=None)

    def next_urgent_retry_ms(self) -> int | None:
        """Returns the monotonic time in milliseconds at which the earliest delay after a transient error ends; None if
        no partition has such a delay.

        Only partitions with at most URGENT_RETRIES transient errors in succession count. Their retries must not wait
        for the response to the Fetch in flight, because the leader may delay it.
        """
        delayed = [self.partitions[topic_partition] for topic_partition in self._delayed]
        urgent = [state.delayed_until_ms for state in delayed if 0 < state.transient_errors <= URGENT_RETRIES]
        return min(urgent, default=None)

    @property
    def has_new_partitions(self) -> bool:
        """True if partitions were added, or got a new leader epoch, since the last request.

        A partition that was only appended to since then does not count: a request that was sent ahead contains it.
        """
        return any(self._is_new(topic_partition) for topic_partition in self._changed)

    def _is_new(self, topic_partition: TopicPartition) -> bool:
        state, sent = self.partitions.get(topic_partition), self._session.held.get(topic_partition)
        if state is None:
            return False
        return sent is None or (sent.topic_id, sent.leader_epoch) != (state.topic_id, state.leader_epoch)

    def abandon_request(self) -> None:
        """Makes the next request name all partitions, because the last request will get no response."""
        self._session.lose()

    def _position_of(self, topic_partition: TopicPartition) -> FetchPosition | None:
        state = self.partitions.get(topic_partition)
        if state is None or not state.is_fetchable or self._is_withheld(state):
            return None
        return state.position()

    def _is_withheld(self, state: FollowedPartition) -> bool:
        """Returns whether the partition is not fetched now, because it is not in sync and the rate of throttled
        partitions is exceeded (KIP-73)."""
        throttle = state.log.throttle
        if throttle is None or state.is_in_sync or throttle.has_room(0, self._now_ms):
            return False
        wait_ms = min(max(throttle.throttle_ms(self._now_ms), 1), LONGEST_THROTTLE_MS)
        self._withheld_until_ms = self._now_ms + wait_ms
        return True

    def _offset_query(self) -> OffsetQuery | None:
        """Returns a query of the leader's end offsets if a partition waits for one, otherwise of the leader's start
        offsets.

        Returns None if no partition waits for an offset of the leader.
        """
        for phase, timestamp in ((Phase.ASKING_END, LATEST_TIMESTAMP), (Phase.ASKING_START, EARLIEST_TIMESTAMP)):
            asking = [self.partitions[topic_partition] for topic_partition in self._asking]
            epochs = {
                state.topic_partition: state.leader_epoch
                for state in asking
                if state.phase is phase and state.delayed_until_ms == NOT_DELAYED
            }
            if epochs:
                return OffsetQuery(timestamp, epochs)
        return None

    def _truncate_to_high_watermarks(self) -> None:
        for topic_partition in tuple(self._truncating):
            state = self.partitions[topic_partition]
            del self._truncating[topic_partition]
            logger.info("Truncating partition %s to local high watermark %d", topic_partition, state.fetch_offset)
            if self._truncate(state, state.fetch_offset):
                self._resume(state)

    # -- delays --------------------------------------------------------------------------------------------------

    def _delay(self, state: FollowedPartition, monotonic_ms: int, backoff_ms: int | None = None) -> None:
        if state.delayed_until_ms == NOT_DELAYED and state.phase is not Phase.FAILED:
            ends_ms = monotonic_ms + (self._backoff_ms if backoff_ms is None else backoff_ms)
            if not self._delayed or ends_ms < self._next_delay_ends_ms:
                self._next_delay_ends_ms = ends_ms
            state.delayed_until_ms = ends_ms
            self._delayed[state.topic_partition] = None
            self._changed[state.topic_partition] = None

    def _retry(self, state: FollowedPartition, monotonic_ms: int) -> None:
        """Excludes a partition from fetches for a while after a transient error; the time doubles with each further
        error.
        """
        backoff_ms = min(FIRST_RETRY_MS << min(state.transient_errors, 16), self._backoff_ms)
        state.transient_errors += 1
        self._delay(state, monotonic_ms, backoff_ms)

    def _end_delays(self, monotonic_ms: int) -> None:
        if not self._delayed or monotonic_ms < self._next_delay_ends_ms:
            return
        for topic_partition in tuple(self._delayed):
            state = self.partitions[topic_partition]
            if state.delayed_until_ms <= monotonic_ms:
                state.delayed_until_ms = NOT_DELAYED
                del self._delayed[topic_partition]
                self._changed[topic_partition] = None
        ends_ms = [self.partitions[topic_partition].delayed_until_ms for topic_partition in self._delayed]
        self._next_delay_ends_ms = min(ends_ms, default=NOT_DELAYED)

    def _fail(self, state: FollowedPartition) -> None:
        """Stops fetching a partition until its leader epoch rises."""
        logger.warning("Partition %s marked as failed", state.topic_partition)
        state.phase = Phase.FAILED
        state.delayed_until_ms = NOT_DELAYED
        for waiting in (self._delayed, self._truncating, self._asking):
            waiting.pop(state.topic_partition, None)
        self._changed[state.topic_partition] = None

    def _resume(self, state: FollowedPartition) -> None:
        state.resume()
        self._asking.pop(state.topic_partition, None)
        self._changed[state.topic_partition] = None

    # -- responses -----------------------------------------------------------------------------------------------

    def on_failure(self, monotonic_ms: int) -> None:
        """Delays the fetches of all partitions by the back-off time, after the connection was lost or the response
        could not be read. The next request names all partitions."""
        self._session.lose()
        for state in self.partitions.values():
            self._delay(state, monotonic_ms)

    def on_fetched(
        self, response: FetchResponse, monotonic_ms: int, send_ahead: Callable[[FetchPlan], None] | None = None
    ) -> list[TopicPartition]:
        """Handles the response to the request of the last plan; returns the partitions whose high watermark has
        changed.

        If `send_ahead` is given, it is called with the plan of the next request before the records of the response are
        appended, so that the leader can respond during the append. It is not called if the next request depends on
        whether the append succeeds.
        """
        error = Error.of(response.error_code)
        if error is not Error.NONE:
            logger.info("The leader responded to a fetch request with %s", error.name)
            if not self._session.fail(error):
                for state in self.partitions.values():
                    self._delay(state, monotonic_ms)
            return []
        answers = self._valid_answers(response)
        self._session.confirm(response.session_id)
        if send_ahead is not None:
            plan = self._plan_ahead(answers)
            if plan is not None:
                send_ahead(plan)
        for state, data in answers:
            self._handle_answer(state, data, monotonic_ms)
        advanced, self._advanced = self._advanced, []
        return advanced

    def _valid_answers(self, response: FetchResponse) -> list[Answer]:
        """Returns a pair for each partition of the response: its state, and its data in the response. Leaves out
        partitions whose state has changed since the request was sent, because the data are outdated for them.
        """
        answers = []
        for topic in response.responses:
            name = topic.topic or self._topics.get(topic.topic_id)
            if name is None:
                continue
            for data in topic.partitions:
                topic_partition = TopicPartition(name, data.partition_index)
                state = self.partitions.get(topic_partition)
                sent = self._session.held.get(topic_partition)
                if (
                    state is not None
                    and sent is not None
                    and state.is_fetchable
                    and sent.fetch_offset == state.fetch_offset
                    and sent.leader_epoch == state.leader_epoch
                    and sent.topic_id == state.topic_id
                ):
                    answers.append((state, data))
        return answers

    def _plan_ahead(self, answers: list[Answer]) -> FetchPlan | None:
        """Returns the request to send before this response is handled, on the assumption that all its records will be
        appended.

        Returns None if the response has no records, if the next request would acknowledge a record at or above the high
        watermark, or if a partition has an error, has to be truncated, needs an offset of the leader, or is throttled.
        If an append fails after all, the response to the request that was sent ahead is ignored for the partition.
        """
        if self._truncating or self._asking or self._throttled:
            return None  # The bytes of throttled partitions are counted when they are appended.
        ahead: dict[TopicPartition, FetchPosition] = {}
        for state, data in answers:
            if data.error_code or data.diverging_epoch.epoch != UNDEFINED_EPOCH:
                return None
            if not data.records:
                continue
            if state.fetch_offset >= data.high_watermark:
                return None  # without a look at the batches: a follower in the ISR is always here
            end = end_of_fetched(data.records, state.leader_epoch)
            if end is None or end[0] >= data.high_watermark:
                return None
            offset, epoch = end
            ahead[state.topic_partition] = FetchPosition(
                state.topic_id, offset, state.log.log_start_offset, state.leader_epoch, epoch
            )
        if not ahead:
            return None

        def position_of(topic_partition: TopicPartition) -> FetchPosition | None:
            return ahead.get(topic_partition) or self._position_of(topic_partition)

        return self._plan([*ahead], position_of)

    def _handle_answer(self, state: FollowedPartition, data: FetchResponse.PartitionData, monotonic_ms: int) -> None:
        """Handles `data`, the part of a Fetch response about one partition: appends its records, truncates the log
        where it diverges from the leader's log, or handles the error.
        """
        if self.partitions.get(state.topic_partition) is not state or not state.is_fetchable:
            return  # the failure of another partition's log has ended this one
        if data.error_code:
            self._on_error(state, Error.of(data.error_code), monotonic_ms)
            return
        state.transient_errors = 0
        if data.diverging_epoch.epoch != UNDEFINED_EPOCH:
            diverging = OffsetAndEpoch(data.diverging_epoch.end_offset, data.diverging_epoch.epoch)
            self._truncate_diverging(state, diverging)
        else:
            self._append(state, data, monotonic_ms)

    def _on_error(self, state: FollowedPartition, error: Error, monotonic_ms: int) -> None:
        if error is Error.OFFSET_OUT_OF_RANGE:
            state.phase = Phase.ASKING_END
            self._asking[state.topic_partition] = None
            self._changed[state.topic_partition] = None
        elif error is Error.FENCED_LEADER_EPOCH:
            logger.info(
                "Partition %s has an older epoch (%d) than the current leader. Will await the new leader and epoch "
                "before resuming fetching.",
                state.topic_partition,
                state.leader_epoch,
            )
            self._fail(state)
        else:
            is_transient = error in _TRANSIENT
            logger.log(
                logging.INFO if is_transient else logging.ERROR,
                "Error for partition %s at offset %d: %s",
                state.topic_partition,
                state.fetch_offset,
                error.name,
            )
            if is_transient:
                self._retry(state, monotonic_ms)
            else:
                self._delay(state, monotonic_ms)

    def _append(self, state: FollowedPartition, data: FetchResponse.PartitionData, monotonic_ms: int) -> None:
        log = state.log
        records = data.records
        if state.fetch_offset != log.log_end_offset:
            logger.error(
                "Offset mismatch for partition %s: fetched offset = %d, log end offset = %d.",
                state.topic_partition,
                state.fetch_offset,
                log.log_end_offset,
            )
            self._fail(state)
            return
        try:
            size = log.append(records, state.leader_epoch) if records else 0
            if log.throttle is not None and records:
                log.throttle.record(len(records), monotonic_ms)
            state.is_in_sync = data.high_watermark <= log.log_end_offset
            if log.follow(data.high_watermark, data.log_start_offset):
                self._advanced.append(state.topic_partition)
        except ApiError as error:
            logger.error(
                "Found invalid messages during fetch for partition %s offset %d: %s",
                state.topic_partition,
                state.fetch_offset,
                error,
            )
            if error.error in _DAMAGE:
                self._delay(state, monotonic_ms)
            else:
                self._fail(state)
        except StorageError as error:
            self._report_storage_error(state, error)
        else:
            if size:
                self.fetched_bytes += size
                state.resume()
                self._changed[state.topic_partition] = None

    def _truncate_diverging(self, state: FollowedPartition, diverging: OffsetAndEpoch) -> None:
        """Truncates the log to the part that it has in common with the leader's log. `diverging` is the largest epoch
        that both logs may have in common, with its end offset in the leader's log. The high watermark and the log start
        offset in the same response are ignored.
        """
        log = state.log
        own_end = log.end_offset_for_epoch(diverging.epoch)
        offset = truncation_offset(diverging, own_end, log.log_end_offset)
        if self._truncate(state, offset):
            self._resume(state)

    def _truncate(self, state: FollowedPartition, offset: int) -> bool:
        """Truncates the log to `offset`; returns False, and marks the partition as failed, if the log directory has
        failed.
        """
        log = state.log
        if offset < log.high_watermark:
            logger.warning(
                "Truncating %s to offset %d below high watermark %d", state.topic_partition, offset, log.high_watermark
            )
        try:
            log.truncate_to(offset)
        except StorageError as error:
            self._report_storage_error(state, error)
            return False
        return True

    def _report_storage_error(self, state: FollowedPartition, error: StorageError) -> None:
        logger.error(
            "Error while processing data for partition %s at offset %d: %s",
            state.topic_partition,
            state.fetch_offset,
            error,
        )
        self._fail(state)

    # -- offsets out of range ------------------------------------------------------------------------------------

    def on_offsets(self, query: OffsetQuery, found: dict[TopicPartition, LeaderOffset], monotonic_ms: int) -> None:
        """Handles the response to an OffsetQuery; a partition that the response does not name is delayed."""
        phase = Phase.ASKING_END if query.timestamp == LATEST_TIMESTAMP else Phase.ASKING_START
        for topic_partition, leader_epoch in query.leader_epochs.items():
            state = self.partitions.get(topic_partition)
            if state is None or state.phase is not phase or state.leader_epoch != leader_epoch:
                continue
            leader = found.get(topic_partition, LeaderOffset(Error.UNKNOWN_SERVER_ERROR, -1))
            if leader.error is Error.FENCED_LEADER_EPOCH:
                self._fail(state)
            elif leader.error is not Error.NONE or leader.offset < 0:
                logger.info("Could not fetch offset for %s due to error %s", topic_partition, leader.error.name)
                self._delay(state, monotonic_ms)
            elif phase is Phase.ASKING_END:
                self._compare_end(state, leader.offset)
            else:
                self._compare_start(state, leader.offset)

    def _compare_end(self, state: FollowedPartition, leader_end_offset: int) -> None:
        """Truncates the log to the leader's end offset if the log is longer, as after an unclean election.

        If the log is not longer, the leader is asked for its start offset next.
        """
        own_end_offset = state.log.log_end_offset
        if leader_end_offset >= own_end_offset:
            state.phase = Phase.ASKING_START
            return
        logger.warning(
            "Reset fetch offset for partition %s from %d to current leader's latest offset %d",
            state.topic_partition,
            own_end_offset,
            leader_end_offset,
        )
        if self._truncate(state, leader_end_offset):
            self._resume(state)

    def _compare_start(self, state: FollowedPartition, leader_start_offset: int) -> None:
        """Restarts the log at the leader's start offset if this offset is above the log end offset. Then, whether the
        log was restarted or not, makes fetching continue at the end of the log, unless the log directory has failed."""
        log = state.log
        if leader_start_offset > log.log_end_offset:
            logger.warning(
                "Reset fetch offset for partition %s from %d to current leader's start offset %d",
                state.topic_partition,
                log.log_end_offset,
                leader_start_offset,
            )
            try:
                log.restart_at(leader_start_offset)
            except StorageError as error:
                self._report_storage_error(state, error)
                return
        self._resume(state)
