"""Fetches of followers that the gate answers without Python."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.types import TopicPartition
from tests.api_client import ask
from tests.harness.led_partitions import FIRST_EPOCH, FOLLOWERS, LedPartitions
from tests.twin_brokers import BrokerTwin

PARTITIONS = [TopicPartition("t", index) for index in range(3)]
PRODUCER = 1
FOLLOWER = FOLLOWERS[0]  # the number of its connection too
BATCH_BYTES = 73


@pytest.fixture
def led(tmp_path):
    """Three partitions with two records each, written in two leader epochs, and a follower that has all of them."""
    twin = BrokerTwin(tmp_path, gated=True)
    twin.create_topic("t", len(PARTITIONS), {})
    led = LedPartitions(twin)
    led.run("register", dict.fromkeys(FOLLOWERS, FIRST_EPOCH))
    for _ in range(2):
        for partition in PARTITIONS:
            led.run("change", partition, True)
            produce(twin, partition.partition)
    for replica_id in FOLLOWERS:
        fetch(led, {index: (2, epoch_of(led, index)) for index in range(3)}, replica_id=replica_id)
    yield led
    twin.stop()


def epoch_of(led, index):
    return led.manager.partitions[PARTITIONS[index]].log.latest_epoch


def produce(twin, index):
    builder = RecordBatchBuilder()
    builder.append(1_700_000_000_000, None, b"value")
    data = [ProduceRequest.PartitionProduceData(index=index, records=builder.build())]
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=data)]
    ask(twin.connection(PRODUCER), ApiKey.PRODUCE, 9, ProduceRequest(acks=1, topic_data=topics), ProduceResponse)


def fetch(led, asked, *, session=(0, -1), replica_id=FOLLOWER, max_wait_ms=0):
    """Returns the response, and whether the gate answered. `asked`: partition -> (offset, last fetched epoch)."""
    twin = led.twin
    before = twin.broker.parts.gate.counters()["follower_fetches_answered"]
    partitions = [
        FetchRequest.FetchPartition(
            partition=index,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            current_leader_epoch=led.manager.partitions[PARTITIONS[index]].leader_epoch,
            partition_max_bytes=1 << 20,
            log_start_offset=0,
        )
        for index, (offset, epoch) in asked.items()
    ]
    request = FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=FIRST_EPOCH),
        max_bytes=1 << 20,
        min_bytes=1,
        max_wait_ms=max_wait_ms,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchRequest.FetchTopic(topic_id=twin.topic_ids["t"], partitions=partitions)] if partitions else [],
    )
    response = ask(twin.connection(replica_id), ApiKey.FETCH, 17, request, FetchResponse)
    assert response.error_code == 0, response
    return response, twin.broker.parts.gate.counters()["follower_fetches_answered"] > before


def sizes(response):
    """Returns the number of fetched bytes by partition."""
    data = [data for topic in response.responses for data in topic.partitions]
    assert all(each.error_code == 0 and each.diverging_epoch.epoch == -1 for each in data), response
    return {each.partition_index: len(each.records or b"") for each in data}


def test_an_idle_partition_of_an_older_leader_epoch_does_not_close_the_gate(led):
    last_epochs = [epoch_of(led, index) for index in range(3)]
    led.run("change", PARTITIONS[0], True)
    led.run("change", PARTITIONS[0], True)
    assert epoch_of(led, 0) == last_epochs[0] + 2
    produce(led.twin, 1)
    response, is_gated = fetch(led, {index: (2, last_epochs[index]) for index in range(3)})
    assert (sizes(response), is_gated) == ({0: 0, 1: BATCH_BYTES, 2: 0}, True)


def test_a_follower_that_catches_up_in_an_older_leader_epoch_is_served(led):
    response, is_gated = fetch(led, {0: (1, epoch_of(led, 0) - 1)})
    assert (sizes(response), is_gated) == ({0: BATCH_BYTES}, True)


@pytest.mark.parametrize(("offset", "epoch_change"), [(2, -1), (2, 1), (1, -2)])
def test_a_follower_whose_log_diverges_is_left_to_python(led, offset, epoch_change):
    epoch = epoch_of(led, 0) + epoch_change
    response, is_gated = fetch(led, {0: (offset, epoch)})
    data = response.responses[0].partitions[0]
    assert (data.error_code or data.diverging_epoch.epoch >= 0, is_gated) == (True, False), data


def test_incremental_fetches_of_several_partitions_are_served(led):
    epochs = [epoch_of(led, index) for index in range(3)]
    opened, is_gated = fetch(led, {index: (2, epochs[index]) for index in range(3)}, session=(0, 0))
    assert not is_gated
    produce(led.twin, 0)
    produce(led.twin, 2)
    response, is_gated = fetch(led, {}, session=(opened.session_id, 1))
    assert (sizes(response), is_gated) == ({0: BATCH_BYTES, 2: BATCH_BYTES}, True)
    places = {0: (3, epochs[0]), 2: (3, epochs[2])}
    response, is_gated = fetch(led, places, session=(opened.session_id, 2), max_wait_ms=1)
    # The high watermark waits for the other follower.
    assert (sizes(response), is_gated) == ({}, True)


def test_a_follower_outside_the_isr_is_served_until_it_has_caught_up(led):
    led.run("change", PARTITIONS[0], True, FOLLOWERS[1:])
    produce(led.twin, 0)
    fetch(led, {0: (3, epoch_of(led, 0))}, replica_id=FOLLOWERS[1])
    epoch = epoch_of(led, 0)
    response, is_gated = fetch(led, {0: (2, epoch - 1)})
    assert (sizes(response), is_gated, led.controller.asked) == ({0: BATCH_BYTES}, True, [])
    _, is_gated = fetch(led, {0: (3, epoch)})
    assert (is_gated, len(led.controller.asked)) == (False, 1)
