"""Fetch in its versions: without and with sessions, with topic ids, and its errors."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.message_set import iterate_messages, iterate_records
from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import Endpoint
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.server.handlers.fetch import handle_fetch
from kafkapy.types import random_uuid
from tests.harness.handler import HandlerHarness
from tests.harness.replica import NODE_ID, broker, partition_image


@pytest.fixture
def harness(tmp_path):
    made = HandlerHarness(tmp_path, brokers=(NODE_ID, 2))
    made.put_topic("t", [partition_image(), partition_image()])
    return made


def request(harness, offsets, version, *, name="t", topic_id=None, session=(0, -1), forgotten=(), **fields):
    """Returns a request. `offsets` maps partitions to fetch offsets; `session` is (id, epoch)."""
    known = harness.metadata.image.topics.by_name.get(name)
    topic_id = topic_id or (known.topic_id if known else bytes(16))
    topics = [
        FetchRequest.FetchTopic(
            topic="" if version >= 13 else name,
            topic_id=topic_id if version >= 13 else bytes(16),
            partitions=[
                FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
                for partition, offset in offsets.items()
            ],
        )
    ]
    values = {"max_wait_ms": 0, "min_bytes": 1, "topics": topics if offsets else []}
    if version >= 7:
        values["session_id"], values["session_epoch"] = session
        if forgotten:
            values["forgotten_topics_data"] = [
                FetchRequest.ForgottenTopic(
                    topic="" if version >= 13 else name,
                    topic_id=topic_id if version >= 13 else bytes(16),
                    partitions=list(forgotten),
                )
            ]
    return FetchRequest(**{**values, **fields})


def found_in(response):
    """Returns (partition, error, values) for each partition in a response."""
    return [
        (
            partition.partition_index,
            partition.error_code,
            [bytes(record.value) for each in iterate_batches(partition.records or b"") for record in each],
        )
        for topic in response.responses
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_reads(harness, version):
    harness.append(b"a", b"b")
    response = harness.send(handle_fetch, request(harness, {0: 0}, version), version).response
    assert found_in(response) == [(0, 0, [b"a", b"b"])]
    (topic,) = response.responses
    (partition,) = topic.partitions
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 2)
    assert partition.aborted_transactions is None
    assert topic.topic == ("t" if version < 13 else "")
    assert (response.error_code, response.session_id) == (0, 0)


def old_records(partition):
    """Returns (offset, value) of the messages of magic 0 or 1 in a response."""
    return [(record.offset, record.value) for record in iterate_records(partition.records or b"")]


@pytest.mark.parametrize("version", range(4))
def test_clients_before_batches_get_message_sets(harness, version):
    harness.append(b"a", b"b")
    harness.append(b"c", compression=3)
    response = harness.send(handle_fetch, request(harness, {0: 1, 1: 0}, version), version).response
    first, second = sorted(
        (partition for topic in response.responses for partition in topic.partitions),
        key=lambda partition: partition.partition_index,
    )
    assert (first.error_code, first.high_watermark) == (0, 3)
    assert old_records(first) == [(1, b"b"), (2, b"c")]
    assert {message.magic for message in iterate_messages(first.records)} == {0 if version < 2 else 1}
    assert (second.error_code, old_records(second)) == (0, [])


@pytest.mark.parametrize("version", [0, 3])
def test_what_an_old_client_cannot_see_is_passed_over(harness, version):
    harness.append(b"a", producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True)
    for _ in range(3):
        abort_marker(harness)
    harness.append(b"b")
    for offset, expected in ((0, [(0, b"a"), (4, b"b")]), (1, [(4, b"b")]), (2, [(4, b"b")])):
        sent = request(harness, {0: offset}, version)
        sent.topics[0].partitions[0].partition_max_bytes = 100
        (partition,) = harness.send(handle_fetch, sent, version).response.responses[0].partitions
        assert old_records(partition) == expected[: len(old_records(partition))]
        assert old_records(partition)
    abort_marker(harness)
    (partition,) = (
        harness.send(handle_fetch, request(harness, {0: 5}, version), version).response.responses[0].partitions
    )
    assert (partition.error_code, partition.high_watermark, old_records(partition)) == (0, 6, [])


def test_zstd_is_for_version_10_and_later(tmp_path):
    harness = HandlerHarness(tmp_path)
    harness.put_topic("t", [partition_image()])
    harness.append(b"a")
    harness.append(b"b", compression=4)
    found = found_in(harness.send(handle_fetch, request(harness, {0: 1}, 3), 3).response)
    assert found == [(0, Error.UNSUPPORTED_COMPRESSION_TYPE, [])]
    # Without conversion, Kafka checks the topic's compression.type and not the batches.
    assert found_in(harness.send(handle_fetch, request(harness, {0: 1}, 4), 4).response) == [(0, 0, [b"b"])]
    harness.partition().log.config.codec = 4
    for version, error in ((3, 76), (4, 76), (9, 76), (10, 0)):
        (partition,) = (
            harness.send(handle_fetch, request(harness, {0: 0}, version), version).response.responses[0].partitions
        )
        assert partition.error_code == error


def test_partitions_take_turns_to_exceed_the_limits(harness):
    for number in (0, 1):
        harness.append(b"x" * 5000, number=number)
    sizes = []
    for correlation_id in (0, 1):
        sent = request(harness, {0: 0, 1: 0}, 3, max_bytes=100)
        response = harness.send(handle_fetch, sent, 3, correlation_id=correlation_id).response
        partitions = [partition for topic in response.responses for partition in topic.partitions]
        sizes.append({partition.partition_index: len(partition.records) > 5000 for partition in partitions})
    assert sizes == [{0: True, 1: False}, {0: False, 1: True}]


def test_errors_of_partitions(harness):
    response = harness.send(handle_fetch, request(harness, {0: 9, 7: 0}, 12), 12).response
    assert found_in(response) == [(0, Error.OFFSET_OUT_OF_RANGE, []), (7, Error.UNKNOWN_TOPIC_OR_PARTITION, [])]
    (topic,) = response.responses
    assert {(each.high_watermark, each.log_start_offset) for each in topic.partitions} == {(-1, -1)}
    response = harness.send(handle_fetch, request(harness, {0: 0}, 13, topic_id=random_uuid()), 13).response
    assert found_in(response) == [(0, Error.UNKNOWN_TOPIC_ID, [])]


def test_waits_and_answers_later(harness):
    answer = harness.send(handle_fetch, request(harness, {0: 0, 1: 0}, 12, max_wait_ms=500), 12)
    assert not answer.is_answered
    harness.append(b"a", number=1)
    assert found_in(answer.response) == [(0, 0, []), (1, 0, [b"a"])]


def test_an_unknown_partition_does_not_end_the_wait_for_the_others(harness):
    answer = harness.send(handle_fetch, request(harness, {0: 0, 7: 0}, 12, max_wait_ms=500), 12)
    assert not answer.is_answered
    harness.scheduler.advance(500)
    assert [error for _, error, _ in found_in(answer.response)] == [0, Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_fetch_max_bytes_of_the_broker(tmp_path):
    harness = HandlerHarness(tmp_path, overrides={"fetch.max.bytes": "1024"})
    harness.put_topic("t", [partition_image(), partition_image()])
    harness.append(b"x" * 900, number=0)
    harness.append(b"y" * 900, number=1)
    # The broker's maximum limits `min_bytes` too, because otherwise the fetch would wait until its timeout.
    response = harness.send(
        handle_fetch, request(harness, {0: 0, 1: 0}, 12, min_bytes=1 << 30, max_wait_ms=500), 12
    ).response
    lengths = [len(each.records) for each in response.responses[0].partitions]
    assert lengths[0] > 900
    assert lengths[1] == 1024 - lengths[0]


@pytest.mark.parametrize("version", [12, 13, 18])
def test_an_incremental_session(harness, version):
    def send(offsets, session, **fields):
        return harness.send(
            handle_fetch, request(harness, offsets, version, session=session, **fields), version
        ).response

    harness.append(b"a")
    opened = send({0: 0, 1: 0}, (0, 0))
    session_id = opened.session_id
    assert session_id > 0
    assert found_in(opened) == [(0, 0, [b"a"]), (1, 0, [])]
    # Nothing is new, so the response has no partitions.
    assert found_in(send({0: 1}, (session_id, 1))) == []
    harness.append(b"b", number=1)
    assert found_in(send({}, (session_id, 2))) == [(1, 0, [b"b"])]
    # A repeated epoch, a wrong session id, and topic ids instead of names or the reverse are refused.
    assert send({}, (session_id, 2)).error_code == Error.INVALID_FETCH_SESSION_EPOCH
    assert send({}, (session_id + 1, 3)).error_code == Error.FETCH_SESSION_ID_NOT_FOUND
    other = 12 if version >= 13 else 13
    mixed = harness.send(handle_fetch, request(harness, {}, other, session=(session_id, 3)), other).response
    assert mixed.error_code == Error.FETCH_SESSION_TOPIC_ID_ERROR
    # Partition 0 is forgotten: its records are not sent any more.
    harness.append(b"c")
    assert found_in(send({1: 1}, (session_id, 3), forgotten=[0])) == []
    assert found_in(send({0: 1}, (session_id, 4))) == [(0, 0, [b"c"])]
    # Final epoch: the session is closed.
    assert found_in(send({0: 0}, (session_id, -1))) == [(0, 0, [b"a", b"c"])]
    assert send({}, (session_id, 5)).error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_moved_offsets_and_errors_are_news(harness):
    def send(offsets, session, **fields):
        return harness.send(handle_fetch, request(harness, offsets, 12, session=session, **fields), 12).response

    harness.append(b"a", b"b")
    session_id = send({0: 2, 1: 0}, (0, 0)).session_id
    assert found_in(send({}, (session_id, 1))) == []
    harness.manager.delete_records(0, {harness.partition().topic_partition: 1}, lambda results: None)
    assert found_in(send({}, (session_id, 2))) == [(0, 0, [])]
    assert found_in(send({}, (session_id, 3))) == []
    assert found_in(send({0: 99}, (session_id, 4))) == [(0, Error.OFFSET_OUT_OF_RANGE, [])]
    assert found_in(send({}, (session_id, 5))) == [(0, Error.OFFSET_OUT_OF_RANGE, [])]
    # After the error has ended, the partition is sent once more, although nothing else is new.
    assert found_in(send({0: 2}, (session_id, 6))) == [(0, 0, [])]
    assert found_in(send({}, (session_id, 7))) == []


def test_a_topic_that_becomes_known_during_a_session(harness):
    topic_id = random_uuid()
    opened = harness.send(
        handle_fetch, request(harness, {0: 0}, 13, name="later", topic_id=topic_id, session=(0, 0)), 13
    ).response
    assert found_in(opened) == [(0, Error.UNKNOWN_TOPIC_ID, [])]
    harness.put_topic("later", [partition_image()], topic_id=topic_id)
    harness.append(b"a", name="later")
    response = harness.send(handle_fetch, request(harness, {}, 13, session=(opened.session_id, 1)), 13).response
    assert found_in(response) == [(0, 0, [b"a"])]


def test_a_topic_that_is_added_to_a_session_before_it_becomes_known(harness):
    opened = harness.send(handle_fetch, request(harness, {0: 0}, 13, session=(0, 0)), 13).response
    topic_id, session_id = random_uuid(), opened.session_id
    added = request(harness, {0: 0}, 13, name="later", topic_id=topic_id, session=(session_id, 1))
    assert found_in(harness.send(handle_fetch, added, 13).response) == [(0, Error.UNKNOWN_TOPIC_ID, [])]
    harness.put_topic("later", [partition_image()], topic_id=topic_id)
    harness.append(b"a", name="later")
    response = harness.send(handle_fetch, request(harness, {}, 13, session=(session_id, 2)), 13).response
    assert found_in(response) == [(0, 0, [b"a"])]


def test_a_session_that_another_connection_moved_on_while_we_waited(harness):
    session_id = harness.send(handle_fetch, request(harness, {0: 0}, 12, session=(0, 0)), 12).response.session_id
    parked = harness.send(handle_fetch, request(harness, {}, 12, session=(session_id, 1), max_wait_ms=500), 12)
    harness.send(handle_fetch, request(harness, {}, 12, session=(session_id, 2)), 12)
    harness.append(b"a")
    assert parked.response.error_code == Error.INVALID_FETCH_SESSION_EPOCH
    assert parked.response.responses == []


def test_partitions_that_gave_records_go_to_the_end(harness):
    session_id = harness.send(handle_fetch, request(harness, {0: 0, 1: 0}, 12, session=(0, 0)), 12).response.session_id
    for epoch in (1, 2):
        for number in (0, 1):
            harness.append(b"x" * 1000, number=number)
        sent = request(harness, {}, 12, session=(session_id, epoch), max_bytes=100)
        response = harness.send(handle_fetch, sent, 12).response
        full = [each.partition_index for each in response.responses[0].partitions if len(each.records)]
        assert full == [epoch - 1]


def test_the_wrong_broker_names_the_leader(harness):
    endpoint = Endpoint("PLAINTEXT", "other.example", 9093, 0)
    other = broker(2)._replace(endpoints={"PLAINTEXT": endpoint})
    harness.metadata.image = harness.metadata.image._replace(brokers={**harness.metadata.image.brokers, 2: other})
    harness.put_topic("t", [partition_image(replicas=(NODE_ID, 2), leader=2, leader_epoch=5, partition_epoch=1)])
    sent = request(harness, {0: 0}, 16, replica_state=FetchRequest.ReplicaState(replica_id=3, replica_epoch=1))
    response = harness.send(handle_fetch, sent, 16).response
    (partition,) = response.responses[0].partitions
    assert partition.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (2, 5)
    assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == [(2, "other.example", 9093)]
    # From version 11 on, which has racks, a consumer may read from a follower; in an older version it may not.
    assert found_in(harness.send(handle_fetch, request(harness, {0: 0}, 11), 11).response) == [(0, 0, [])]
    assert found_in(harness.send(handle_fetch, request(harness, {0: 0}, 10), 10).response) == [
        (0, Error.NOT_LEADER_OR_FOLLOWER, [])
    ]


def test_read_committed_gets_aborted_transactions(harness):
    harness.append(b"a", producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True)
    response = harness.send(handle_fetch, request(harness, {0: 0}, 12, isolation_level=1), 12).response
    (partition,) = response.responses[0].partitions
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)
    assert partition.aborted_transactions == []
    assert found_in(response) == [(0, 0, [])]
    abort_marker(harness)
    response = harness.send(handle_fetch, request(harness, {0: 0}, 12, isolation_level=1), 12).response
    (partition,) = response.responses[0].partitions
    assert partition.last_stable_offset == 2
    assert [(each.producer_id, each.first_offset) for each in partition.aborted_transactions] == [(4, 0)]


def abort_marker(harness):
    builder = RecordBatchBuilder(producer_id=4, producer_epoch=0, is_transactional=True, is_control=True)
    builder.append(harness.clock.wall_ms(), b"\0\0\0\0", b"\0\0\0\0\0\0")
    marker = memoryview(bytearray(builder.build()))
    harness.manager.append_records(
        0, 1, {harness.partition().topic_partition: marker}, lambda answers: None, from_client=False
    )
