"""Produce in its versions: names and topic ids, refusals, acks=0, leader hints."""

from __future__ import annotations

import pytest

from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import Endpoint
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.server.handlers.produce import handle_produce
from kafkapy.types import random_uuid
from tests.harness.handler import HandlerHarness
from tests.harness.replica import NODE_ID, batch, broker, partition_image, values_of


@pytest.fixture
def harness(tmp_path):
    made = HandlerHarness(tmp_path, brokers=(NODE_ID, 2))
    made.put_topic("t", [partition_image(), partition_image()])
    return made


def request(records, *, version=12, acks=-1, name="t", topic_id=bytes(16), index=0, transactional_id=None):
    topic = ProduceRequest.TopicProduceData(
        name="" if version >= 13 else name,
        topic_id=topic_id,
        partition_data=[ProduceRequest.PartitionProduceData(index=index, records=records)],
    )
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=[topic])


def only(response):
    (topic,) = response.responses
    (partition,) = topic.partition_responses
    return partition


@pytest.mark.parametrize("version", range(14))
def test_every_version_appends(harness, version):
    topic_id = harness.metadata.image.topics.by_name["t"].topic_id if version >= 13 else bytes(16)
    sent = request(batch(b"a", b"b"), version=version, topic_id=topic_id)
    found = only(harness.send(handle_produce, sent, version).response)
    assert (found.error_code, found.base_offset, found.log_append_time_ms) == (0, 0, -1)
    assert found.log_start_offset == (0 if version >= 5 else -1)
    assert values_of(harness.fetch(0)[0]) == [b"a", b"b"]


def test_unknown_topics(harness):
    assert only(harness.send(handle_produce, request(batch(b"a"), name="x"), 12).response).error_code == 3
    assert only(harness.send(handle_produce, request(batch(b"a"), index=9), 12).response).error_code == 3
    unknown = request(batch(b"a"), version=13, topic_id=random_uuid())
    assert only(harness.send(handle_produce, unknown, 13).response).error_code == Error.UNKNOWN_TOPIC_ID


def corrupt():
    data = batch(b"a")
    data[-1] ^= 1
    return data


def with_magic(magic):
    data = batch(b"a")
    data[16] = magic
    return data


@pytest.mark.parametrize(
    ("records", "version", "error"),
    [
        (None, 12, Error.INVALID_RECORD),
        (b"", 12, Error.INVALID_RECORD),
        (corrupt(), 12, Error.CORRUPT_MESSAGE),
        (batch(b"a") + batch(b"b"), 12, Error.INVALID_RECORD),
        (batch(b"a")[:-1], 12, Error.INVALID_RECORD),
        (bytes(16), 12, Error.CORRUPT_MESSAGE),
        (batch(b"a") + bytes(12), 12, Error.CORRUPT_MESSAGE),
        (with_magic(3), 12, Error.CORRUPT_MESSAGE),
        (with_magic(1), 12, Error.INVALID_RECORD),
        (with_magic(1), 2, Error.CORRUPT_MESSAGE),
        (batch(b"a", compression=4), 6, Error.UNSUPPORTED_COMPRESSION_TYPE),
        (batch(b"x" * 2_000_000), 12, Error.MESSAGE_TOO_LARGE),
    ],
)
def test_refused_records(harness, records, version, error):
    found = only(harness.send(handle_produce, request(records, version=version), version).response)
    assert (found.error_code, found.base_offset) == (error, -1)
    assert harness.partition().log.log_end_offset == 0


def test_what_is_too_short_for_a_batch_behind_one_is_left_out(harness):
    assert only(harness.send(handle_produce, request(batch(b"a") + bytes(5)), 12).response).error_code == 0
    assert harness.partition().log.size == len(batch(b"a"))


def test_zstd_in_a_version_that_knows_it(harness):
    assert only(harness.send(handle_produce, request(batch(b"a", compression=4)), 12).response).error_code == 0


def test_idempotent_duplicates_are_answered_with_their_offsets(harness):
    fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    first = only(harness.send(handle_produce, request(batch(b"a", **fields)), 12).response)
    again = only(harness.send(handle_produce, request(batch(b"a", **fields)), 12).response)
    assert (first.base_offset, again.base_offset, again.error_code) == (0, 0, 0)
    gap = only(harness.send(handle_produce, request(batch(b"b", **{**fields, "base_sequence": 5})), 12).response)
    assert (gap.error_code, gap.log_start_offset) == (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


def test_acks_0_is_not_answered_and_an_error_closes_the_connection(harness):
    good = harness.send(handle_produce, request(batch(b"a"), acks=0), 12)
    assert good.connection.answers == [None]
    assert good.connection.closed is None
    bad = harness.send(handle_produce, request(corrupt(), acks=0), 12)
    assert bad.connection.answers == []
    assert bad.connection.closed is not None


def test_internal_topics_are_for_the_admin_client_only(harness):
    harness.put_topic("__consumer_offsets", [partition_image()])
    sent = request(batch(b"a"), name="__consumer_offsets")
    assert only(harness.send(handle_produce, sent, 12).response).error_code == Error.INVALID_TOPIC_EXCEPTION
    assert only(harness.send(handle_produce, sent, 12, client_id="__admin_client").response).error_code == 0


def test_the_wrong_broker_names_the_leader(harness):
    endpoint = Endpoint("PLAINTEXT", "other.example", 9093, 0)
    other = broker(2)._replace(endpoints={"PLAINTEXT": endpoint}, rack="r")
    harness.metadata.image = harness.metadata.image._replace(brokers={**harness.metadata.image.brokers, 2: other})
    harness.put_topic("t", [partition_image(replicas=(NODE_ID, 2), leader=2, leader_epoch=5, partition_epoch=1)])
    response = harness.send(handle_produce, request(batch(b"a")), 12).response
    found = only(response)
    assert found.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (2, 5)
    (node,) = response.node_endpoints
    assert (node.node_id, node.host, node.port, node.rack) == (2, "other.example", 9093, "r")
    old = harness.send(handle_produce, request(batch(b"a")), 9).response
    assert only(old).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_an_empty_request_is_answered_empty(harness):
    answer = harness.send(handle_produce, ProduceRequest(acks=1, timeout_ms=1), 12)
    assert answer.response.responses == []
    assert harness.send(handle_produce, ProduceRequest(acks=0, timeout_ms=1), 12).connection.answers == [None]
