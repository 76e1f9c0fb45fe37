"""The decisions of a fetcher, with a log that records the calls of its methods."""

from __future__ import annotations

import pytest

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy._core.bytes.record_batch import RecordBatchBuilder, scan_batches
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.replica.fetcher.fetch_session import FetchPlan
from kafkapy.replica.fetcher.followed_partition import Phase
from kafkapy.replica.fetcher.leader_fetcher import (
    FIRST_RETRY_MS,
    LeaderFetcher,
    LeaderOffset,
    OffsetQuery,
)
from kafkapy.replica.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kafkapy.types import OffsetAndEpoch, TopicPartition

BACKOFF_MS = 1000
NAME = TopicPartition("t", 0)
TOPIC_ID = b"t" * 16


class NotedLog:
    """A log that ends at `end`, has the leader epochs (epoch, start offset), and records every change in `done`."""

    def __init__(self, end=0, epochs=((0, 0),), high_watermark=0):
        self.log_start_offset = 0
        self.log_end_offset = end
        self.high_watermark = high_watermark
        self.epochs = list(epochs)
        self.done = []
        self.failure = None
        self.throttle = None

    @property
    def latest_epoch(self):
        return self.epochs[-1][0] if self.epochs else -1

    def end_offset_for_epoch(self, epoch):
        known = [entry for entry in self.epochs if entry[0] <= epoch]
        later = [entry for entry in self.epochs if entry[0] > epoch]
        if not known:
            return OffsetAndEpoch(-1, -1)
        return OffsetAndEpoch(later[0][1] if later else self.log_end_offset, known[-1][0])

    def append(self, records, leader_epoch):
        if self.failure is not None:
            raise self.failure
        self.done.append(f"append {len(records)} up to epoch {leader_epoch}")
        self.log_end_offset += len(records)
        return len(records)

    def truncate_to(self, offset):
        if self.failure is not None:
            raise self.failure
        self.done.append(f"truncate to {offset}")
        self.log_end_offset = min(offset, self.log_end_offset)
        self.epochs = [entry for entry in self.epochs if entry[1] < offset]

    def restart_at(self, offset):
        self.done.append(f"restart at {offset}")
        self.log_start_offset = self.log_end_offset = offset
        self.epochs = []

    def follow(self, high_watermark, log_start_offset):
        followed = min(high_watermark, self.log_end_offset)
        changed = followed != self.high_watermark
        self.high_watermark = followed
        return changed


def fetcher_of(log, *, epoch=5, name=NAME):
    fetcher = LeaderFetcher(BACKOFF_MS)
    fetcher.follow(name, TOPIC_ID, epoch, log)
    return fetcher


def response(*partitions, session_id=9, error=Error.NONE, topic_id=TOPIC_ID):
    return FetchResponse(
        error_code=error,
        session_id=session_id,
        responses=[FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=list(partitions))],
    )


def data(*, index=0, error=Error.NONE, high_watermark=0, records=b"", diverging=None):
    found = FetchResponse.PartitionData(
        partition_index=index, error_code=error, high_watermark=high_watermark, log_start_offset=0, records=records
    )
    if diverging is not None:
        found.diverging_epoch = FetchResponse.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    return found


def failed(fetcher):
    return [name for name, state in fetcher.partitions.items() if state.phase is Phase.FAILED]


def positions(plan):
    assert isinstance(plan, FetchPlan)
    return {
        name.partition: (at.fetch_offset, at.leader_epoch, at.last_fetched_epoch) for name, at in plan.positions.items()
    }


def test_fetching_starts_at_the_log_end_with_the_last_epoch():
    fetcher = fetcher_of(NotedLog(7, [(2, 0), (3, 5)]))
    plan = fetcher.next_request(0)
    assert (plan.session_id, plan.session_epoch, plan.forgotten) == (0, 0, [])
    assert positions(plan) == {0: (7, 5, 3)}


def test_a_log_without_epochs_is_truncated_to_its_high_watermark_first():
    log = NotedLog(7, [], high_watermark=4)
    fetcher = fetcher_of(log)
    assert fetcher.partitions[NAME].phase is Phase.TRUNCATING
    assert positions(fetcher.next_request(0)) == {0: (4, 5, -1)}
    assert log.done == ["truncate to 4"]


def test_an_append_moves_the_position_and_the_high_watermark_within_the_log():
    log = NotedLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    assert fetcher.on_fetched(response(data(high_watermark=100, records=b"abc")), 0) == [NAME]
    assert log.done == ["append 3 up to epoch 5"]
    assert (log.log_end_offset, log.high_watermark, fetcher.fetched_bytes) == (10, 10, 3)
    plan = fetcher.next_request(0)
    assert (plan.session_id, plan.session_epoch) == (9, 1)
    assert positions(plan) == {0: (10, 5, 0)}


def test_a_session_repeats_only_what_has_changed():
    logs = [NotedLog(index) for index in range(3)]
    fetcher = LeaderFetcher(BACKOFF_MS)
    for index, log in enumerate(logs):
        fetcher.follow(TopicPartition("t", index), TOPIC_ID, 5, log)
    assert set(positions(fetcher.next_request(0))) == {0, 1, 2}
    fetcher.on_fetched(response(data(index=1, records=b"ab"), data(index=2, high_watermark=1)), 0)
    plan = fetcher.next_request(0)
    assert positions(plan) == {1: (3, 5, 0)}
    fetcher.on_fetched(response(), 0)
    fetcher.release(TopicPartition("t", 0))
    fetcher.follow(TopicPartition("t", 2), TOPIC_ID, 6, logs[2])
    plan = fetcher.next_request(0)
    assert (plan.session_epoch, plan.forgotten) == (2, [(TopicPartition("t", 0), TOPIC_ID)])
    assert positions(plan) == {2: (2, 6, 0)}
    fetcher.on_fetched(response(session_id=0), 0)  # the leader has closed the session
    plan = fetcher.next_request(0)
    assert (plan.session_id, plan.session_epoch) == (0, 0)
    assert set(positions(plan)) == {1, 2}


@pytest.mark.parametrize(
    ("error", "session", "is_delayed"),
    [
        (Error.FETCH_SESSION_ID_NOT_FOUND, (0, 0), False),
        (Error.INVALID_FETCH_SESSION_EPOCH, (9, 0), False),
        (Error.FETCH_SESSION_TOPIC_ID_ERROR, (9, 0), True),
        (Error.UNKNOWN_SERVER_ERROR, (9, 0), True),
    ],
)
def test_an_error_of_the_session_begins_another(error, session, is_delayed):
    fetcher = fetcher_of(NotedLog(7))
    fetcher.next_request(0)
    fetcher.on_fetched(response(), 0)
    fetcher.next_request(0)
    fetcher.on_fetched(response(error=error), 0)
    if is_delayed:
        assert fetcher.next_request(BACKOFF_MS - 1) is None
    plan = fetcher.next_request(BACKOFF_MS)
    assert (plan.session_id, plan.session_epoch) == session
    assert positions(plan) == {0: (7, 5, 0)}


def test_after_a_lost_connection_everything_is_sent_again_after_the_back_off():
    fetcher = fetcher_of(NotedLog(7))
    fetcher.next_request(0)
    fetcher.on_fetched(response(), 0)
    fetcher.next_request(0)
    fetcher.on_failure(50)
    assert fetcher.next_request(50) is None
    assert fetcher.next_deadline_ms() == 50 + BACKOFF_MS
    plan = fetcher.next_request(50 + BACKOFF_MS)
    assert (plan.session_id, plan.session_epoch) == (9, 0)
    assert positions(plan) == {0: (7, 5, 0)}
    assert fetcher.next_deadline_ms() is None


@pytest.mark.parametrize(
    "error",
    [
        Error.UNKNOWN_LEADER_EPOCH,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.INCONSISTENT_TOPIC_ID,
        Error.KAFKA_STORAGE_ERROR,
        Error.CORRUPT_MESSAGE,
    ],
)
def test_a_partition_with_an_error_leaves_the_session_until_its_back_off_ends(error):
    logs = NotedLog(7), NotedLog(8)
    fetcher = fetcher_of(logs[0])
    fetcher.follow(TopicPartition("t", 1), TOPIC_ID, 5, logs[1])
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(error=error)), 0)
    plan = fetcher.next_request(1)
    assert (positions(plan), plan.forgotten) == ({}, [(NAME, TOPIC_ID)])
    assert fetcher.next_deadline_ms() in (FIRST_RETRY_MS, BACKOFF_MS)
    fetcher.on_fetched(response(), 1)
    plan = fetcher.next_request(fetcher.next_deadline_ms())
    assert (positions(plan), plan.forgotten) == ({0: (7, 5, 0)}, [])
    assert not logs[0].done


def test_transient_errors_in_a_row_double_the_back_off():
    fetcher = fetcher_of(NotedLog(7))
    monotonic_ms = 0
    waited = []
    for _ in range(8):
        fetcher.next_request(monotonic_ms)
        fetcher.on_fetched(response(data(error=Error.NOT_LEADER_OR_FOLLOWER)), monotonic_ms)
        waited.append(fetcher.next_deadline_ms() - monotonic_ms)
        monotonic_ms = fetcher.next_deadline_ms()
    assert waited == [50, 100, 200, 400, 800, 1000, 1000, 1000]
    fetcher.next_request(monotonic_ms)
    fetcher.on_fetched(response(data()), monotonic_ms)
    fetcher.next_request(monotonic_ms)
    fetcher.on_fetched(response(data(error=Error.UNKNOWN_LEADER_EPOCH)), monotonic_ms)
    assert fetcher.next_deadline_ms() == monotonic_ms + FIRST_RETRY_MS


def test_delays_of_different_lengths_end_one_by_one():
    logs = NotedLog(7), NotedLog(8)
    fetcher = fetcher_of(logs[0])
    fetcher.follow(TopicPartition("t", 1), TOPIC_ID, 5, logs[1])
    fetcher.next_request(0)
    long, short = data(error=Error.CORRUPT_MESSAGE), data(index=1, error=Error.NOT_LEADER_OR_FOLLOWER)
    fetcher.on_fetched(response(long, short), 0)
    assert fetcher.next_deadline_ms() == FIRST_RETRY_MS
    plan = fetcher.next_request(FIRST_RETRY_MS)
    assert (positions(plan), plan.forgotten) == ({}, [(NAME, TOPIC_ID)])  # the leader knows the position of the other
    assert fetcher.next_deadline_ms() == BACKOFF_MS
    fetcher.release(NAME)
    assert fetcher.next_deadline_ms() is None


def test_a_fenced_partition_is_stopped_until_its_leader_epoch_rises():
    log = NotedLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(error=Error.FENCED_LEADER_EPOCH)), 0)
    assert failed(fetcher) == [NAME]
    assert fetcher.next_request(0).forgotten == [(NAME, TOPIC_ID)]
    fetcher.on_fetched(response(session_id=0), 0)
    assert fetcher.next_request(10 * BACKOFF_MS) is None
    assert fetcher.follow(NAME, TOPIC_ID, 5, log).phase is Phase.FAILED
    assert fetcher.follow(NAME, TOPIC_ID, 6, log).phase is Phase.FETCHING
    assert positions(fetcher.next_request(0)) == {0: (7, 6, 0)}


@pytest.mark.parametrize("change", ["epoch", "offset", "topic", "removed"])
def test_a_response_counts_only_for_the_state_that_asked_for_it(change):
    log = NotedLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    if change == "epoch":
        fetcher.follow(NAME, TOPIC_ID, 6, log)
    elif change == "offset":
        log.log_end_offset = 5
        fetcher.release(NAME)
        fetcher.follow(NAME, TOPIC_ID, 5, log)
    elif change == "topic":
        fetcher.follow(NAME, b"u" * 16, 5, log)
    else:
        fetcher.release(NAME)
    assert fetcher.on_fetched(response(data(high_watermark=7, records=b"stale")), 0) == []
    fetcher.on_fetched(response(data(error=Error.FENCED_LEADER_EPOCH)), 0)
    assert (log.done, log.high_watermark, failed(fetcher)) == ([], 0, [])


@pytest.mark.parametrize(
    ("epochs", "diverging", "truncated"),
    [
        ([(2, 0), (3, 5)], (3, 6), 6),  # the leader's epoch 3 is shorter
        ([(2, 0), (3, 5)], (2, 8), 5),  # the leader has no epoch 3, and more of epoch 2
        ([(2, 0), (3, 5)], (2, 4), 4),
        ([(1, 0), (4, 5)], (3, 8), 5),  # this log has no epoch 3: the end of epoch 1, then asked again
        ([(5, 3)], (2, 2), 2),  # no epoch up to 2 is known
        ([(2, 0), (3, 5)], (0, 0), 0),
    ],
)
def test_a_diverging_log_is_truncated_to_the_common_part(epochs, diverging, truncated):
    log = NotedLog(10, epochs, high_watermark=3)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    assert fetcher.on_fetched(response(data(high_watermark=9, diverging=diverging)), 0) == []
    assert log.done == [f"truncate to {truncated}"]
    assert log.high_watermark == 3  # the next response moves it
    assert positions(fetcher.next_request(0)) == {0: (truncated, 5, log.latest_epoch)}


@pytest.mark.parametrize(
    ("end", "start", "done", "offset"),
    [
        (5, None, ["truncate to 5"], 5),  # unclean election: the leader's log is shorter
        (20, 12, ["restart at 12"], 12),  # the leader has deleted everything up to this log's end
        (20, 10, [], 10),
        (20, 3, [], 10),  # the offset came into range
        (10, 10, [], 10),
    ],
)
def test_an_offset_out_of_range_is_judged_by_the_leaders_offsets(end, start, done, offset):
    log = NotedLog(10)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(error=Error.OFFSET_OUT_OF_RANGE)), 0)
    query = fetcher.next_request(0)
    assert query == OffsetQuery(LATEST_TIMESTAMP, {NAME: 5})
    fetcher.on_offsets(query, {NAME: LeaderOffset(Error.NONE, end)}, 0)
    if start is not None:
        query = fetcher.next_request(0)
        assert query == OffsetQuery(EARLIEST_TIMESTAMP, {NAME: 5})
        fetcher.on_offsets(query, {NAME: LeaderOffset(Error.NONE, start)}, 0)
    assert log.done == done
    # The leader's session may have this position already.
    assert positions(fetcher.next_request(0)) in ({}, {0: (offset, 5, log.latest_epoch)})
    assert fetcher.partitions[NAME].is_fetchable
    assert fetcher._session.held[NAME].fetch_offset == offset


@pytest.mark.parametrize("found", [{}, {NAME: LeaderOffset(Error.NOT_LEADER_OR_FOLLOWER, -1)}])
def test_a_query_of_offsets_is_repeated_after_an_error(found):
    fetcher = fetcher_of(NotedLog(10))
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(error=Error.OFFSET_OUT_OF_RANGE)), 0)
    query = fetcher.next_request(0)
    fetcher.on_offsets(query, found, 0)
    assert isinstance(fetcher.next_request(0), FetchPlan)  # takes the partition out of the session
    assert fetcher.next_request(BACKOFF_MS) == query
    fetcher.on_offsets(query, {NAME: LeaderOffset(Error.FENCED_LEADER_EPOCH, -1)}, BACKOFF_MS)
    assert failed(fetcher) == [NAME]


def test_the_offsets_of_a_former_leader_epoch_change_nothing():
    log = NotedLog(10)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(error=Error.OFFSET_OUT_OF_RANGE)), 0)
    query = fetcher.next_request(0)
    fetcher.follow(NAME, TOPIC_ID, 6, log)
    fetcher.on_offsets(query, {NAME: LeaderOffset(Error.NONE, 2)}, 0)
    assert log.done == []
    assert positions(fetcher.next_request(0)) == {0: (10, 6, 0)}


@pytest.mark.parametrize(
    ("failure", "is_failed"),
    [
        (ApiError(Error.CORRUPT_MESSAGE), False),
        (ApiError(Error.OFFSET_OUT_OF_RANGE, "out of order"), True),
        (StorageError("/d", "disk full"), True),
    ],
)
def test_an_append_that_fails_delays_or_stops_its_partition(failure, is_failed):
    log = NotedLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    log.failure = failure
    fetcher.on_fetched(response(data(high_watermark=9, records=b"abc")), 0)
    assert failed(fetcher) == [NAME] * is_failed
    assert log.high_watermark == 0
    log.failure = None
    fetcher.next_request(0)
    plan = fetcher.next_request(BACKOFF_MS)
    assert plan is None if is_failed else positions(plan) == {0: (7, 5, 0)}


def test_a_truncation_that_fails_stops_its_partition():
    log = NotedLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    log.failure = StorageError("/d", "disk full")
    fetcher.on_fetched(response(data(diverging=(0, 2))), 0)
    assert failed(fetcher) == [NAME]


def test_a_log_that_moved_behind_the_fetcher_stops_its_partition():
    log = NotedLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    log.log_end_offset = 6
    fetcher.on_fetched(response(data(records=b"abc")), 0)
    assert failed(fetcher) == [NAME]
    assert log.done == []


def test_partitions_of_unknown_topics_in_a_response_are_ignored():
    fetcher = fetcher_of(NotedLog(7))
    fetcher.next_request(0)
    assert fetcher.on_fetched(response(data(high_watermark=9), topic_id=b"x" * 16), 0) == []
    assert fetcher.on_fetched(response(data(index=3, high_watermark=9)), 0) == []


def test_the_names_of_former_topics_are_forgotten():
    fetcher = LeaderFetcher(BACKOFF_MS)
    for number in range(100):
        name = TopicPartition(f"t{number}", 0)
        fetcher.follow(name, number.to_bytes(16, "big"), 0, NotedLog())
        fetcher.release(name)
    assert len(fetcher._topics) < 50


# -- the next request before the append


def batches(start, *epochs):
    """Returns the bytes of one batch of one record for each of the epochs, at offsets from `start` on."""
    records = b""
    for index, epoch in enumerate(epochs):
        builder = RecordBatchBuilder(start + index, partition_leader_epoch=epoch)
        builder.append(0, None, b"value")
        records += builder.build()
    return records


class BatchLog(NotedLog):
    """A NotedLog that counts batches."""

    def append(self, records, leader_epoch):
        size = super().append(records, leader_epoch)
        found, _ = scan_batches(records)
        self.log_end_offset += len(found) - size
        self.epochs.append((found[-1].partition_leader_epoch, found[-1].base_offset))
        return size


def fetched_ahead(fetcher, answer):
    """Passes a response to the fetcher, and returns the request that the fetcher sent before it appended; None if none.

    Checks that the logs were unchanged when the request was sent.
    """
    logs = [state.log for state in fetcher.partitions.values()]
    before = [list(log.done) for log in logs]
    sent = []

    def send(plan):
        assert [log.done for log in logs] == before
        sent.append(plan)

    fetcher.on_fetched(answer, 0, send)
    return sent[0] if sent else None


def test_a_follower_far_behind_sends_its_next_request_before_it_appends():
    log = BatchLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    ahead = fetched_ahead(fetcher, response(data(high_watermark=10, records=batches(7, 3, 4))))
    assert (ahead.session_id, ahead.session_epoch) == (9, 1)
    assert positions(ahead) == {0: (9, 5, 4)}
    assert (len(log.done), log.log_end_offset) == (1, 9)
    ahead = fetched_ahead(fetcher, response(data(high_watermark=11, records=batches(9, 4))))
    assert (ahead.session_epoch, positions(ahead)) == (2, {0: (10, 5, 4)})
    assert fetched_ahead(fetcher, response(data(high_watermark=11, records=batches(10, 4)))) is None
    plan = fetcher.next_request(0)
    assert (plan.session_epoch, positions(plan)) == (3, {0: (11, 5, 4)})
    assert log.log_end_offset == 11


@pytest.mark.parametrize("high_watermark", [0, 8, 9])
def test_records_that_the_next_request_would_commit_are_appended_first(high_watermark):
    log = BatchLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    answer = response(data(high_watermark=high_watermark, records=batches(7, 3, 4)))
    assert fetched_ahead(fetcher, answer) is None
    assert log.log_end_offset == 9


def test_no_request_is_sent_ahead_of_a_partition_that_needs_something_else():
    near = data(index=1, high_watermark=8, records=batches(7, 3))
    for other in (near, data(index=1, error=Error.UNKNOWN_LEADER_EPOCH), data(index=1, diverging=(2, 5))):
        fetcher = LeaderFetcher(BACKOFF_MS)
        for index in range(2):
            fetcher.follow(TopicPartition("t", index), TOPIC_ID, 5, BatchLog(7))
        fetcher.next_request(0)
        far = data(index=0, high_watermark=100, records=batches(7, 3))
        assert fetched_ahead(fetcher, response(far, other)) is None


def test_a_partition_without_records_does_not_prevent_the_request():
    fetcher = LeaderFetcher(BACKOFF_MS)
    for index in range(2):
        fetcher.follow(TopicPartition("t", index), TOPIC_ID, 5, BatchLog(7))
    fetcher.next_request(0)
    far = data(index=0, high_watermark=100, records=batches(7, 3))
    assert positions(fetched_ahead(fetcher, response(far, data(index=1, high_watermark=7)))) == {0: (8, 5, 3)}


def test_a_leader_without_sessions_gets_all_partitions_ahead():
    fetcher = LeaderFetcher(BACKOFF_MS)
    for index in range(2):
        fetcher.follow(TopicPartition("t", index), TOPIC_ID, 5, BatchLog(7))
    fetcher.next_request(0)
    far = data(index=0, high_watermark=100, records=batches(7, 3))
    ahead = fetched_ahead(fetcher, response(far, session_id=0))
    assert (ahead.session_epoch, positions(ahead)) == (0, {0: (8, 5, 3), 1: (7, 5, 0)})


def test_records_fetched_ahead_are_ignored_after_a_failed_append():
    log = BatchLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    log.failure = ApiError(Error.CORRUPT_MESSAGE)
    assert fetched_ahead(fetcher, response(data(high_watermark=100, records=batches(7, 3)))) is not None
    log.failure = None
    fetcher.on_fetched(response(data(high_watermark=100, records=batches(8, 3))), 0)
    assert (log.done, log.log_end_offset) == ([], 7)
    assert positions(fetcher.next_request(BACKOFF_MS)) == {0: (7, 5, 0)}


def test_records_fetched_ahead_are_ignored_after_a_new_leader_epoch():
    log = BatchLog(7)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    assert fetched_ahead(fetcher, response(data(high_watermark=100, records=batches(7, 3)))) is not None
    fetcher.follow(NAME, TOPIC_ID, 6, log)
    fetcher.on_fetched(response(data(high_watermark=100, records=batches(8, 3))), 0)
    assert log.log_end_offset == 8


def throttled(log, rate):
    log.throttle = QuotaSensor(rate, 11, 1000, is_simple=True)
    return log


def test_a_throttled_partition_is_left_out_while_the_rate_is_exceeded():
    """KIP-73: the fetcher asks again when the rate is back at the quota."""
    log = throttled(NotedLog(), 10)
    fetcher = fetcher_of(log)
    fetcher.follow(TopicPartition("t", 1), TOPIC_ID, 5, NotedLog())
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(records=b"x" * 40, high_watermark=1000), data(index=1)), 0)
    plan = fetcher.next_request(100)
    assert [name.partition for name, _ in plan.forgotten] == [0]
    assert fetcher.next_deadline_ms() == 100 + 1000
    fetcher.on_fetched(response(), 200)
    assert positions(fetcher.next_request(4000)) == {0: (40, 5, 0)}
    assert fetcher.next_deadline_ms() is None


def test_a_throttled_partition_in_sync_is_counted_and_fetched():
    log = throttled(NotedLog(), 10)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(records=b"x" * 40, high_watermark=40)), 0)
    assert log.throttle.rate(0) == 40
    assert positions(fetcher.next_request(1)) == {0: (40, 5, 0)}


def test_a_fetcher_with_only_withheld_partitions_waits():
    log = throttled(NotedLog(), 10)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(records=b"x" * 20, high_watermark=1000)), 0)
    fetcher.next_request(0)  # removes the partition from the session
    fetcher.on_fetched(response(), 0)
    assert fetcher.next_request(0) is None
    assert fetcher.next_deadline_ms() == 1000


def test_no_request_is_sent_ahead_of_a_throttled_partition():
    fetcher = fetcher_of(throttled(BatchLog(7), 1 << 20))
    fetcher.next_request(0)
    assert fetched_ahead(fetcher, response(data(high_watermark=100, records=batches(7, 3)))) is None


def test_the_end_of_a_throttle_is_noticed():
    log = throttled(NotedLog(), 1)
    fetcher = fetcher_of(log)
    fetcher.next_request(0)
    fetcher.on_fetched(response(data(records=b"x" * 40, high_watermark=1000)), 0)
    fetcher.next_request(0)
    fetcher.on_fetched(response(), 0)
    log.throttle = None
    fetcher.follow_throttles()
    assert positions(fetcher.next_request(1)) == {0: (40, 5, 0)}
