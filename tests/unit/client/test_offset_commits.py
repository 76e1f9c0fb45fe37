"""Commits of a consumer: synchronous, asynchronous and automatic, with the leader epochs of the positions."""

from __future__ import annotations

import pytest

from kafkapy.client import ApiError, ConfigError, OffsetAndMetadata, RequestTimedOut, TopicPartition
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from tests.harness.client_log import LogBrokers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
EPOCH = 6


@pytest.fixture
def brokers():
    harness = LogBrokers()
    harness.fill("t", [f"a{number}" for number in range(30)], ["b0", "b1"], epoch=EPOCH)
    yield harness
    harness.close()


def consumer_of(brokers, **settings):
    made = brokers.consumer(
        **{"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False, **settings}
    )
    made.partitions_for("t")
    made.assign([T0])
    return made


def poll(consumer):
    for _ in range(100):
        found = consumer.poll(0.5)
        if found:
            return found
    raise AssertionError("no records")


def poll_until(consumer, is_done):
    for _ in range(200):
        consumer.poll(0.1)
        if is_done():
            return
    raise AssertionError("it did not happen")


def test_a_commit_has_the_position_and_its_leader_epoch(brokers):
    with consumer_of(brokers) as consumer:
        poll(consumer)
        consumer.commit()
        assert brokers.committed == {T0: OffsetAndMetadata(10, "", EPOCH)}


def test_an_asynchronous_commit_has_the_leader_epoch(brokers):
    results = []
    with consumer_of(brokers) as consumer:
        poll(consumer)
        consumer.committed([T0])  # finds the coordinator
        consumer.commit_async(on_commit=lambda offsets, error: results.append((offsets, error)))
        poll_until(consumer, lambda: results)
    assert brokers.committed == {T0: OffsetAndMetadata(10, "", EPOCH)}
    assert results == [({T0: OffsetAndMetadata(10, "", EPOCH)}, None)]


def test_an_automatic_commit_has_the_leader_epoch_and_its_interval(brokers):
    with consumer_of(brokers, enable_auto_commit=True, auto_commit_interval_ms=3000, max_poll_records=5) as consumer:
        poll(consumer)
        start = brokers.clock.monotonic_ms()
        poll_until(consumer, lambda: brokers.committed)
        assert brokers.committed[T0].leader_epoch == EPOCH
        commits = [each.at_ms - start for each in brokers.asked if each.key == ApiKey.OFFSET_COMMIT]
        assert 2500 <= commits[0] <= 4000
        poll_until(consumer, lambda: len(brokers.of(ApiKey.OFFSET_COMMIT)) > 1)
        commits = [each.at_ms for each in brokers.asked if each.key == ApiKey.OFFSET_COMMIT]
        assert commits[1] - commits[0] >= 3000


def test_closing_commits_the_positions_if_auto_commit_is_on(brokers):
    with consumer_of(brokers, enable_auto_commit=True) as consumer:
        poll(consumer)
        assert not brokers.committed
    assert brokers.committed == {T0: OffsetAndMetadata(10, "", EPOCH)}


def test_closing_commits_nothing_if_auto_commit_is_off(brokers):
    with consumer_of(brokers) as consumer:
        poll(consumer)
    assert not brokers.committed


def test_a_failed_automatic_commit_is_logged_and_repeated(brokers, caplog):
    brokers.commit_errors = [Error.INVALID_COMMIT_OFFSET_SIZE]
    with consumer_of(brokers, enable_auto_commit=True, auto_commit_interval_ms=1000) as consumer:
        poll_until(consumer, lambda: brokers.committed)
    assert "Auto-commit failed" in caplog.text


def test_given_offsets_and_metadata_are_committed(brokers):
    with consumer_of(brokers) as consumer:
        consumer.commit({T0: 7, ("t", 1): OffsetAndMetadata(1, "half", 2)})
        assert brokers.committed == {T0: OffsetAndMetadata(7), T1: OffsetAndMetadata(1, "half", 2)}
        assert consumer.committed([T0, T1, ("t", 5)]) == {
            T0: OffsetAndMetadata(7), T1: OffsetAndMetadata(1, "half", 2), ("t", 5): None
        }  # fmt: skip


def test_no_request_is_sent_without_offsets(brokers):
    with consumer_of(brokers) as consumer:
        consumer.commit({})
        consumer.commit_async({})
        consumer.poll(0.2)
    assert not brokers.of(ApiKey.OFFSET_COMMIT)


def test_a_commit_without_offsets_succeeds_in_the_next_poll(brokers):
    results = []
    with consumer_of(brokers) as consumer:
        consumer.commit_async({}, lambda offsets, error: results.append((offsets, error)))
        assert not results
        consumer.poll(0.2)
        assert results == [({}, None)]


def test_a_commit_is_repeated_after_a_retriable_error(brokers):
    brokers.commit_errors = [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR]
    with consumer_of(brokers) as consumer:
        consumer.commit({T0: 3})
    assert brokers.committed[T0].offset == 3
    assert len(brokers.of(ApiKey.FIND_COORDINATOR)) == 2


def test_an_asynchronous_commit_is_not_repeated(brokers):
    results = []
    with consumer_of(brokers) as consumer:
        consumer.committed([T0])
        brokers.commit_errors = [Error.COORDINATOR_LOAD_IN_PROGRESS]
        consumer.commit_async({T0: 3}, lambda offsets, error: results.append(error))
        poll_until(consumer, lambda: results)
    assert results[0].error is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert len(brokers.of(ApiKey.OFFSET_COMMIT)) == 1


def test_an_asynchronous_commit_fails_while_the_coordinator_is_unknown(brokers):
    results = []
    with consumer_of(brokers) as consumer:
        consumer.commit_async({T0: 3}, lambda offsets, error: results.append(error))
        poll_until(consumer, lambda: results)
    assert results[0].error is Error.COORDINATOR_NOT_AVAILABLE


def test_the_callback_of_an_asynchronous_commit_comes_before_a_later_commit_returns(brokers):
    order = []
    with consumer_of(brokers) as consumer:
        consumer.committed([T0])
        consumer.commit_async({T0: 3}, lambda offsets, error: order.append("asynchronous"))
        poll_until(consumer, lambda: brokers.committed)
        consumer.commit({T0: 4})
        order.append("synchronous")
    assert order == ["asynchronous", "synchronous"]


def test_a_commit_fails_with_the_error_of_the_partition(brokers):
    brokers.commit_errors = [Error.OFFSET_METADATA_TOO_LARGE]
    with consumer_of(brokers) as consumer, pytest.raises(ApiError, match="Commit of t-0") as raised:
        consumer.commit({T0: 3})
    assert raised.value.error is Error.OFFSET_METADATA_TOO_LARGE


def test_a_commit_ends_when_its_time_is_over(brokers):
    with consumer_of(brokers) as consumer:
        brokers.answers[ApiKey.OFFSET_COMMIT] = lambda request, version: None
        begun = brokers.clock.monotonic_ms()
        with pytest.raises(RequestTimedOut, match="before offsets were committed"):
            consumer.commit({T0: 3}, timeout=2)
        assert 2000 <= brokers.clock.monotonic_ms() - begun < 3000


def test_offsets_need_a_group(brokers):
    with brokers.consumer() as consumer:
        consumer.assign([T0])
        for call in (consumer.commit, consumer.commit_async, lambda: consumer.committed([T0]), consumer.group_metadata):
            with pytest.raises(ConfigError, match=r"valid group\.id"):
                call()


def test_a_manual_assignment_begins_at_the_committed_offset(brokers):
    brokers.committed[T0] = OffsetAndMetadata(25, "", EPOCH)
    with consumer_of(brokers) as consumer:
        assert poll(consumer)[0].offset == 25


@pytest.mark.parametrize("committed", [{}, {T0: OffsetAndMetadata(7, "", EPOCH)}])
def test_a_partition_remembers_the_committed_offset_at_which_it_began(brokers, committed):
    brokers.committed = dict(committed)
    with consumer_of(brokers) as consumer:
        assert poll(consumer)[0].offset == (7 if committed else 0)
        assert consumer._subscription.state(T0).found_committed == (7 if committed else -1)


def test_an_offset_of_0_is_committed(brokers):
    brokers.committed[T0] = OffsetAndMetadata(0, "", EPOCH)
    with consumer_of(brokers, auto_offset_reset="latest") as consumer:
        assert poll(consumer)[0].offset == 0


def test_committed_offsets_are_asked_for_again_after_another_assignment(brokers):
    brokers.committed = {T0: OffsetAndMetadata(25, "", EPOCH), T1: OffsetAndMetadata(1, "", EPOCH)}
    with consumer_of(brokers) as consumer:
        assert poll(consumer)[0].offset == 25
        consumer.assign([T1])
        assert poll(consumer)[0].offset == 1
        assert len(brokers.of(ApiKey.OFFSET_FETCH)) == 2


def test_committed_offsets_are_those_of_no_open_transaction(brokers):
    brokers.committed[T0] = OffsetAndMetadata(25, "", EPOCH)
    with consumer_of(brokers) as consumer:
        assert consumer.committed([T0]) == {T0: OffsetAndMetadata(25, "", EPOCH)}
        assert brokers.of(ApiKey.OFFSET_FETCH)[-1].require_stable


def test_interceptors_see_committed_offsets(brokers):
    seen = []

    class Interceptor:
        def on_commit(self, offsets):
            seen.append(offsets)

    with consumer_of(brokers, interceptor_classes=[Interceptor()]) as consumer:
        consumer.commit({T0: 3})
    assert seen == [{T0: OffsetAndMetadata(3)}]
