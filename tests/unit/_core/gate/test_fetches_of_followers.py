"""Fetches of followers that the gate answers without Python."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.reactor.reactor import FOLLOWER_FETCHES
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.types import TopicPartition
from tests.api_client import ask, request_bytes
from tests.harness.led_partitions import FIRST_EPOCH, FOLLOWERS, LedPartitions
from tests.reactor_harness import frame
from tests.twin_brokers import BrokerTwin, receive

PARTITIONS = [TopicPartition("t", index) for index in range(3)]
PRODUCER = 1
FOLLOWER = FOLLOWERS[0]  # the number of its connection too
BATCH_BYTES = 73
VERSION = 17
LONG_MS = 600_000


@pytest.fixture
def led(tmp_path):
    """Yields three partitions with two records each, written in two leader epochs, and a follower that has all of
    them."""
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


def fetch_of(led, asked, *, session=(0, -1), replica_id=FOLLOWER, max_wait_ms=0):
    """Returns the fetch of a follower. `asked`: partition -> (offset, last fetched epoch)."""
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
    topic_id = led.twin.topic_ids["t"]
    return FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=FIRST_EPOCH),
        max_bytes=1 << 20,
        min_bytes=1,
        max_wait_ms=max_wait_ms,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchRequest.FetchTopic(topic_id=topic_id, partitions=partitions)] if partitions else [],
    )


def fetch(led, asked, *, replica_id=FOLLOWER, **keywords):
    """Returns the response to a follower's fetch, and whether the gate answered."""
    gate = led.twin.broker.parts.gate
    before = gate.counters()["follower_fetches_answered"]
    request = fetch_of(led, asked, replica_id=replica_id, **keywords)
    response = ask(led.twin.connection(replica_id), ApiKey.FETCH, VERSION, request, FetchResponse)
    assert response.error_code == 0, response
    return response, gate.counters()["follower_fetches_answered"] > before


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


@pytest.fixture
def held(led):
    """Sends a follower's fetch of all partitions that has to wait."""

    def hold():
        asked = {index: (led.manager.partitions[PARTITIONS[index]].log.log_end_offset, epoch_of(led, index))
                 for index in range(3)}  # fmt: skip
        request = fetch_of(led, asked, max_wait_ms=LONG_MS)
        led.twin.send({FOLLOWER: [frame(request_bytes(ApiKey.FETCH, VERSION, request))]})
        assert led.twin.answered([FOLLOWER]) == set()
        assert (purgatory.delayed_count, purgatory.watched_count()) == (1, 1)

    purgatory = led.manager.delayed_operations.fetch
    return hold


def answer_of(led):
    return FetchResponse.decode(receive(led.twin.connection(FOLLOWER)), VERSION, 5)


@pytest.mark.parametrize("index", range(3))
def test_a_held_fetch_has_one_key_and_is_woken_by_every_partition(led, held, index):
    for _ in range(2):
        held()
        produce(led.twin, index)
        assert sizes(answer_of(led)) == dict.fromkeys(range(3), 0) | {index: BATCH_BYTES}
    assert led.manager.delayed_operations.fetch.watched_count() == 0


@pytest.mark.parametrize("index", range(3))
def test_a_held_fetch_is_answered_when_a_partition_is_no_longer_led_here(led, held, index):
    held()
    led.run("change", PARTITIONS[index], False)
    assert errors_of(answer_of(led))[index] != 0


def test_a_held_fetch_is_answered_when_its_topic_is_deleted(led, held):
    held()
    led.twin.delete_topic("t")
    assert any(errors_of(answer_of(led)).values())


def errors_of(response):
    return {each.partition_index: each.error_code for topic in response.responses for each in topic.partitions}


def meters(led):
    """Returns the numbers of fetches, and of followers' fetches, that were counted."""
    led.twin.answered([])
    counted = {key: requests for key, requests, *_ in led.twin.broker.reactor.request_meters()}
    return counted.get(ApiKey.FETCH, 0), counted.get(FOLLOWER_FETCHES, 0)


def test_followers_fetches_are_counted_by_a_meter_of_their_own(led, held):
    before = meters(led)
    assert before[0] == before[1] > 0
    epoch = epoch_of(led, 0)
    assert fetch(led, {0: (1, epoch)})[1] is True
    assert fetch(led, {0: (3, epoch)})[1] is False
    held()
    produce(led.twin, 0)
    answer_of(led)
    request = FetchRequest(max_bytes=1 << 20, session_epoch=-1, topics=[])
    ask(led.twin.connection(PRODUCER), ApiKey.FETCH, 12, request, FetchResponse)
    assert meters(led) == (before[0] + 4, before[1] + 3)
