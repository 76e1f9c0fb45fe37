"""Fetching ahead of the application: positions, buffers, errors of partitions, and the contents of requests."""

from __future__ import annotations

import pytest

from kafkapy.client import ApiError, LogTruncated, NoOffsetForPartition, TopicPartition
from kafkapy.client.fetcher import BUFFERED_FETCHES, SHORT_WAIT_MS
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.types import ZERO_UUID
from tests.harness.client_log import LogBrokers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def values(prefix, count):
    return [f"{prefix}{number}" for number in range(count)]


@pytest.fixture
def brokers():
    harness = LogBrokers(node_ids=(1, 2))
    harness.fill("t", values("a", 100), values("b", 100))
    yield harness
    harness.close()


@pytest.fixture
def consumer(brokers):
    with brokers.consumer(auto_offset_reset="earliest", max_poll_records=1000) as made:
        made.partitions_for("t")
        yield made


def poll(consumer, limit=100):
    """Polls until there are records."""
    for _ in range(limit):
        found = consumer.poll(0.5)
        if found:
            return [(each.partition, each.offset) for each in found]
    raise AssertionError("no records")


def read(consumer, count):
    found = []
    while len(found) < count:
        found += poll(consumer)
    return found


def serve_and_step(brokers, consumer):
    """Lets the brokers respond, and the client read the responses, without polling."""
    for _ in range(3):
        brokers.serve()
        consumer._network.try_step()


def test_records_arrive_in_the_order_of_their_offsets(consumer):
    consumer.assign([T0])
    assert read(consumer, 100) == [(0, offset) for offset in range(100)]


def test_records_of_a_fetch_from_before_a_seek_are_not_delivered(brokers, consumer):
    consumer.assign([T0])
    poll(consumer)
    assert [offset for _, offset in brokers.fetched_offsets] == [0]  # offset 10 is requested but not served
    consumer.seek(T0, 50)
    assert poll(consumer)[0] == (0, 50)
    assert [offset for _, offset in brokers.fetched_offsets][:3] == [0, 10, 50]


def test_a_lookup_from_before_a_seek_to_the_end_does_not_set_the_position(brokers, consumer):
    answer = brokers.answers[ApiKey.LIST_OFFSETS]

    def seek_first(request, version):
        brokers.answers[ApiKey.LIST_OFFSETS] = answer
        consumer.seek_to_end([T0])  # as a rebalance listener does while the first position is looked up
        return answer(request, version)

    brokers.answers[ApiKey.LIST_OFFSETS] = seek_first
    consumer.assign([T0])
    assert consumer.position(T0) == 100
    assert [each.topics[0].partitions[0].timestamp for each in brokers.of(ApiKey.LIST_OFFSETS)] == [-2, -1]


def test_records_of_a_fetch_from_before_a_new_assignment_are_not_delivered(brokers, consumer):
    consumer.assign([T0])
    consumer.seek(T0, 0)
    poll(consumer)
    consumer.assign([])
    consumer.assign([T0])
    consumer.seek(T0, 50)
    assert poll(consumer)[0] == (0, 50)


def test_buffered_records_of_before_a_seek_are_not_delivered(brokers, consumer):
    consumer.assign([T0])
    poll(consumer)
    serve_and_step(brokers, consumer)
    consumer.seek(T0, 3)
    assert poll(consumer)[0] == (0, 3)


def test_buffered_records_come_before_an_out_of_range_reset(brokers):
    brokers.logs[T0] = values("a", 3)
    with brokers.consumer(auto_offset_reset="earliest", max_poll_records=1) as consumer:
        consumer.assign([T0])
        assert poll(consumer) == [(0, 0)]
        brokers.fetch_errors[T0] = [Error.OFFSET_OUT_OF_RANGE]
        serve_and_step(brokers, consumer)
        assert not brokers.fetch_errors[T0]
        assert [poll(consumer), poll(consumer)] == [[(0, 1)], [(0, 2)]]


def test_an_out_of_range_position_is_reset_by_the_policy(brokers, consumer):
    consumer.assign([T0])
    consumer.seek(T0, 500)
    assert poll(consumer)[0] == (0, 0)
    brokers.starts[T0] = 40
    consumer.seek(T0, 5)
    assert poll(consumer)[0] == (0, 40)


def test_an_out_of_range_position_is_an_error_without_a_policy(brokers):
    with brokers.consumer(auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 500)
        with pytest.raises(
            NoOffsetForPartition, match="Fetch position 500 is out of range for partition t-0"
        ) as raised:
            poll(consumer)
        assert raised.value.partition == T0 and not isinstance(raised.value, LogTruncated)
        consumer.seek(T0, 7)
        assert poll(consumer)[0] == (0, 7)


def test_a_missing_position_is_an_error_without_a_policy(brokers):
    with brokers.consumer(auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        with pytest.raises(NoOffsetForPartition, match="Undefined offset with no reset policy"):
            poll(consumer)


@pytest.mark.parametrize(("policy", "first"), [("earliest", 20), ("latest", 100)])
def test_a_missing_position_is_looked_up_by_the_policy(brokers, policy, first):
    brokers.starts[T0] = 20
    with brokers.consumer(auto_offset_reset=policy) as consumer:
        consumer.assign([T0])
        assert consumer.position(T0, 10) == first


def test_a_position_by_duration_is_looked_up_by_time(brokers):
    brokers.clock.set_wall_ms(1000 + 3_600_000 + 30)
    with brokers.consumer(auto_offset_reset="by_duration:PT1H") as consumer:
        consumer.assign([T0])
        assert consumer.position(T0, 10) >= 30
    timestamp = brokers.of(ApiKey.LIST_OFFSETS)[0].topics[0].partitions[0].timestamp
    assert 1030 <= timestamp <= brokers.clock.wall_ms() - 3_600_000


def test_a_lookup_is_retried_after_a_retriable_error(brokers, consumer):
    brokers.offset_errors[T0] = [Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_SERVER_ERROR]
    consumer.assign([T0])
    assert consumer.position(T0, 30) == 0
    assert len(brokers.of(ApiKey.LIST_OFFSETS)) == 3


def test_a_lookup_that_fails_for_good_is_raised(brokers, consumer):
    brokers.offset_errors[T0] = [Error.TOPIC_AUTHORIZATION_FAILED]
    consumer.assign([T0])
    with pytest.raises(ApiError) as raised:
        poll(consumer)
    assert raised.value.error is Error.TOPIC_AUTHORIZATION_FAILED


def test_a_timestamp_after_the_last_record_leads_to_the_end(consumer):
    consumer.assign([T0])
    consumer.seek_to_time(1_000_000, [T0])
    assert consumer.position(T0, 10) == 100


def test_a_seek_to_a_time_reads_from_the_first_record_of_that_time(consumer):
    consumer.assign([T0])
    consumer.seek_to_time(1042, [T0])
    assert poll(consumer)[0] == (0, 42)


def test_a_seek_during_a_lookup_wins(brokers, consumer):
    consumer.assign([T0])
    consumer.poll(0)
    consumer.seek(T0, 30)
    assert poll(consumer)[0] == (0, 30)


def test_two_responses_of_a_partition_are_buffered_at_most(brokers):
    with brokers.consumer(auto_offset_reset="earliest", max_poll_records=1) as consumer:
        consumer.assign([T0])
        poll(consumer)
        for _ in range(5):
            serve_and_step(brokers, consumer)
        assert [offset for _, offset in brokers.fetched_offsets] == [10 * each for each in range(BUFFERED_FETCHES)]


def test_a_paused_partition_is_neither_fetched_nor_returned(brokers, consumer):
    consumer.assign([T0, T1])
    consumer.pause([T1])
    assert {partition for partition, _ in read(consumer, 50)} == {0}
    assert {each for each, _ in brokers.fetched_offsets} == {T0}
    assert consumer.paused() == {T1}
    consumer.resume([T1])
    assert {partition for partition, _ in read(consumer, 100)} == {0, 1}


def test_buffered_records_of_a_paused_partition_wait(brokers, consumer):
    consumer.assign([T0])
    poll(consumer)
    serve_and_step(brokers, consumer)
    consumer.pause([T0])
    assert not consumer.poll(0)
    consumer.resume([T0])
    assert poll(consumer)[0] == (0, 10)


def test_a_poll_returns_no_more_than_its_limit_and_serves_partitions_in_turn(brokers):
    with brokers.consumer(auto_offset_reset="earliest", max_poll_records=4) as consumer:
        consumer.partitions_for("t")
        consumer.assign([T0, T1])
        polls = [poll(consumer) for _ in range(8)]
    assert all(len(each) <= 4 for each in polls)
    assert {each[0][0] for each in polls} == {0, 1}
    for number in (0, 1):
        offsets = [offset for each in polls for partition, offset in each if partition == number]
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize(
    "error", [Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.FENCED_LEADER_EPOCH]
)
def test_a_stale_leader_is_retried_with_new_metadata(brokers, consumer, error):
    consumer.assign([T0])
    brokers.fetch_errors[T0] = [error]
    before = len(brokers.of(ApiKey.METADATA))
    assert read(consumer, 100)[0] == (0, 0)
    consumer.poll(1)
    assert len(brokers.of(ApiKey.METADATA)) > before


def test_an_error_that_is_not_retriable_is_raised_once_per_poll(brokers, consumer):
    consumer.assign([T0])
    brokers.fetch_errors[T0] = [Error.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(ApiError, match="Fetching t-0") as raised:
        poll(consumer)
    assert raised.value.error is Error.TOPIC_AUTHORIZATION_FAILED
    assert poll(consumer)[0] == (0, 0)


def test_the_leader_that_an_error_names_is_fetched_from(brokers, consumer):
    brokers.versions[ApiKey.OFFSET_FOR_LEADER_EPOCH] = (0, 2)  # too old to validate positions

    def moved(request, version):
        response = brokers._fetch(request, version)
        (data,) = response.responses[0].partitions
        data.error_code, data.records = int(Error.NOT_LEADER_OR_FOLLOWER), None
        data.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
        brokers.answers[ApiKey.FETCH] = brokers._fetch
        return response

    brokers.answers[ApiKey.FETCH] = moved
    consumer.assign([T0])
    poll(consumer)
    assert [each.node_id for each in brokers.asked if each.key == ApiKey.FETCH][:2] == [1, 2]


def test_a_late_response_of_a_former_leader_is_ignored(brokers, consumer):
    """All its records are below the position, which would look like a record that is larger than the fetch."""
    consumer.assign([T0])
    assert poll(consumer)[-1] == (0, 9)
    assert [offset for _, offset in brokers.fetched_offsets] == [0]  # offset 10 is requested but not served
    consumer._subscription.partitions[T0].fetch_offset = 20  # the new leader has responded in the meantime
    assert poll(consumer) == [(0, offset) for offset in range(20, 30)]


def test_the_replica_that_the_leader_prefers_is_read_until_it_fails(brokers, consumer):
    def prefer(request, version):
        response = brokers._fetch(request, version)
        (data,) = response.responses[0].partitions
        data.preferred_read_replica, data.records = 2, None
        brokers.answers[ApiKey.FETCH] = brokers._fetch
        return response

    brokers.answers[ApiKey.FETCH] = prefer
    consumer.assign([T0])
    poll(consumer)
    nodes = [each.node_id for each in brokers.asked if each.key == ApiKey.FETCH]
    assert nodes[:2] == [1, 2]
    brokers.fetch_errors[T0] = [Error.OFFSET_OUT_OF_RANGE]  # for the follower's log only
    read(consumer, 30)
    assert [each.node_id for each in brokers.asked if each.key == ApiKey.FETCH][-1] == 1


def test_a_lost_connection_is_retried_after_a_pause(brokers, consumer):
    consumer.assign([T0])
    brokers.breaks.append(ApiKey.FETCH)
    assert poll(consumer)[0] == (0, 0)
    first, second = [each.at_ms for each in brokers.asked if each.key == ApiKey.FETCH][:2]
    assert second - first >= 50


def test_a_record_that_is_larger_than_the_fetch_is_an_error(brokers, consumer):
    fetch = brokers._fetch

    def cut(request, version):
        response = fetch(request, version)
        for data in response.responses[0].partitions:
            data.records = bytes(data.records)[:40] if data.records else None
        return response

    brokers.answers[ApiKey.FETCH] = cut
    consumer.assign([T0])
    with pytest.raises(ApiError, match="larger than what was fetched") as raised:
        poll(consumer)
    assert raised.value.error is Error.MESSAGE_TOO_LARGE


def test_a_corrupt_batch_is_raised_after_the_records_before_it(brokers, consumer):
    fetch = brokers._fetch

    def corrupt(request, version):
        response = fetch(request, version)
        for data in response.responses[0].partitions:
            if data.records and brokers.fetched_offsets[-1][1] == 10:
                data.records = bytes(data.records)[:-1] + b"x"
        return response

    brokers.answers[ApiKey.FETCH] = corrupt
    consumer.assign([T0])
    assert read(consumer, 10) == [(0, offset) for offset in range(10)]
    with pytest.raises(ApiError) as raised:
        poll(consumer)
    assert raised.value.error is Error.CORRUPT_MESSAGE
    assert consumer.position(T0) == 10


def test_the_request_has_the_configured_limits(brokers):
    with brokers.consumer(
        auto_offset_reset="earliest", fetch_min_bytes=7, fetch_max_bytes=1000, max_partition_fetch_bytes=500,
        fetch_max_wait_ms=321, client_rack="r1", isolation_level="read_committed",
    ) as consumer:  # fmt: skip
        consumer.assign([T0])
        poll(consumer)
    request = brokers.of(ApiKey.FETCH)[0]
    assert (request.min_bytes, request.max_bytes, request.max_wait_ms) == (7, 1000, 321)
    assert (request.rack_id, request.isolation_level) == ("r1", 1)
    (partition,) = request.topics[0].partitions
    assert (partition.partition_max_bytes, partition.current_leader_epoch) == (500, 3)


def test_a_fetch_waits_briefly_while_another_partition_is_buffered(brokers):
    brokers.logs[T1] = []
    with brokers.consumer(auto_offset_reset="earliest", max_poll_records=1) as consumer:
        consumer.partitions_for("t")
        consumer.assign([T0, T1])
        poll(consumer)
        for _ in range(4):
            serve_and_step(brokers, consumer)
    waits = {len(request.topics[0].partitions): request.max_wait_ms for request in brokers.of(ApiKey.FETCH)}
    assert waits == {2: 500, 1: SHORT_WAIT_MS}


def test_old_versions_name_the_topic(brokers, consumer):
    brokers.versions[ApiKey.FETCH] = (4, 8)
    consumer.assign([T0])
    poll(consumer)
    request = brokers.of(ApiKey.FETCH)[0]
    assert request.topics[0].topic == "t"
    assert brokers.of(ApiKey.FETCH)[0].topics[0].partitions[0].current_leader_epoch == -1


def test_a_topic_without_an_id_is_fetched_by_name(brokers, consumer):
    brokers.add_topic("t", [(1, 3), (1, 3)], topic_id=ZERO_UUID)
    consumer.partitions_for("t")
    consumer.assign([T0])
    poll(consumer)
    assert {each.version for each in brokers.asked if each.key == ApiKey.FETCH} == {12}


def test_many_partitions_use_a_session_that_is_replaced_when_it_is_lost(brokers, consumer):
    brokers.fill("many", *[values("m", 5)] * 10)
    partitions = [TopicPartition("many", number) for number in range(10)]
    session = iter(range(70, 80))
    fetch = brokers._fetch
    refusals = []

    def with_session(request, version):
        if request.session_epoch > 0 and refusals:
            return FetchResponse(error_code=int(refusals.pop()))
        response = fetch(request, version)
        response.session_id = request.session_id or next(session)
        return response

    brokers.answers[ApiKey.FETCH] = with_session
    consumer.partitions_for("many")
    consumer.assign(partitions)
    assert len(read(consumer, 50)) == 50
    consumer.poll(0.1)
    numbers = [(each.session_id, each.session_epoch) for each in brokers.of(ApiKey.FETCH)]
    assert numbers[:2] == [(0, 0), (70, 1)]
    refusals.append(Error.FETCH_SESSION_ID_NOT_FOUND)
    for _ in range(20):
        consumer.poll(0.1)
    numbers = [(each.session_id, each.session_epoch) for each in brokers.of(ApiKey.FETCH)]
    assert (71, 1) in numbers and numbers.count((0, 0)) == 2
    assert len(brokers.of(ApiKey.FETCH)[0].topics[0].partitions) == 10
    assert not brokers.of(ApiKey.FETCH)[-1].topics  # the session has no changes


def test_the_lag_is_that_of_the_last_fetch(consumer):
    consumer.assign([T0])
    assert consumer.current_lag(T0) is None
    poll(consumer)
    assert consumer.current_lag(T0) == 90


def test_partitions_of_other_leaders_are_fetched_independently(brokers, consumer):
    brokers.add_topic("t", [(1, 3), (2, 3)])
    consumer.partitions_for("t")
    consumer.assign([T0, T1])
    assert {partition for partition, _ in read(consumer, 40)} == {0, 1}
    assert {each.node_id for each in brokers.asked if each.key == ApiKey.FETCH} == {1, 2}


def test_a_partition_without_a_leader_waits_for_one(brokers, consumer):
    brokers.add_topic("t", [(-1, 4), (1, 3)])
    consumer.partitions_for("t")
    consumer.assign([T0])
    assert not consumer.poll(1)
    brokers.add_topic("t", [(1, 5), (1, 3)])
    assert poll(consumer)[0] == (0, 0)


def test_a_topic_that_the_client_may_not_read_is_an_error(brokers):
    brokers.errors["u"] = Error.TOPIC_AUTHORIZATION_FAILED
    with brokers.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("u", 0)])
        with pytest.raises(ApiError, match=r"Not authorized to access topics: \[u\]"):
            poll(consumer, limit=4)
        brokers.fill("u", values("a", 100))
        consumer.partitions_for("u")
        try:
            found = poll(consumer)
        except ApiError:  # of a lookup between the first error and the new metadata
            found = poll(consumer)
        assert found[0] == (0, 0)
