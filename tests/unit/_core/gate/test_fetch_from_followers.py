"""Fetches of consumers that the gate serves from a follower, or leaves to the choice of a replica (KIP-392)."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.config.startup_rules import RACK_AWARE_SELECTOR
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.types import TopicPartition
from tests.api_client import ask
from tests.harness.led_partitions import FIRST_EPOCH, FOLLOWERS, LedPartitions
from tests.twin_brokers import BrokerTwin

PARTITION = TopicPartition("t", 0)
PRODUCER, CONSUMER = 1, 2


@pytest.fixture
def led(tmp_path):
    properties = {"replica.selector.class": RACK_AWARE_SELECTOR, "broker.rack": "here"}
    twin = BrokerTwin(tmp_path, gated=True, properties=properties)
    twin.create_topic("t", 1, {})
    led = LedPartitions(twin)
    led.run("register", dict.fromkeys(FOLLOWERS, FIRST_EPOCH))
    led.run("change", PARTITION, True)
    for _ in range(3):
        produce(twin)
    for replica_id in FOLLOWERS:
        assert fetch(twin, 2, version=12, replica_id=replica_id)[0].error_code == 0
    yield led
    twin.stop()


def produce(twin):
    builder = RecordBatchBuilder()
    builder.append(1_700_000_000_000, None, b"value")
    data = [ProduceRequest.PartitionProduceData(index=0, records=builder.build())]
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=data)]
    ask(twin.connection(PRODUCER), ApiKey.PRODUCE, 9, ProduceRequest(acks=1, topic_data=topics), ProduceResponse)


def fetch(twin, offset, *, version=12, rack="", replica_id=-1):
    """Returns the data of a fetch, and the number of fetches that the gate answered for it (0 or 1)."""
    before = twin.broker.parts.gate.counters()["fetches_answered"]
    asked = FetchRequest.FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=0)
    request = FetchRequest(
        replica_id=replica_id,
        max_bytes=1 << 20,
        min_bytes=1,
        session_epoch=-1,
        rack_id=rack,
        topics=[FetchRequest.FetchTopic(topic="t", partitions=[asked])],
    )
    response = ask(twin.connection(CONSUMER), ApiKey.FETCH, version, request, FetchResponse)
    return response.responses[0].partitions[0], twin.broker.parts.gate.counters()["fetches_answered"] - before


def test_only_consumers_of_other_racks_are_left_to_the_selector(led):
    for rack, gated in (("here", 1), ("", 1), ("elsewhere", 0), ("her", 0)):
        data, answered = fetch(led.twin, 0, rack=rack)
        assert (data.error_code, data.high_watermark, len(data.records) > 0, answered) == (0, 2, True, gated), rack


def test_a_leader_serves_consumers_below_the_high_watermark(led):
    below, gated = fetch(led.twin, 1)
    assert (below.high_watermark, len(below.records), gated) == (2, 73, 1)
    whole, _ = fetch(led.twin, 0)
    assert len(whole.records) == 2 * 73


def test_a_follower_serves_consumers_below_its_high_watermark(led):
    led.run("change", PARTITION, False)
    data, gated = fetch(led.twin, 0, rack="elsewhere")
    assert (data.error_code, data.high_watermark, len(data.records), gated) == (0, 2, 2 * 73, 1)


@pytest.mark.parametrize(("version", "replica_id"), [(10, -1), (12, FOLLOWERS[0])])
def test_a_follower_serves_neither_old_consumers_nor_followers(led, version, replica_id):
    led.run("change", PARTITION, False)
    data, gated = fetch(led.twin, 0, version=version, replica_id=replica_id)
    assert (data.error_code, gated) == (Error.NOT_LEADER_OR_FOLLOWER, 0)
