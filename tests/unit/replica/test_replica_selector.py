"""The replica that a consumer should read from (KIP-392), and fetches of consumers from followers."""

from __future__ import annotations

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.config.startup_rules import LEADER_SELECTOR, RACK_AWARE_SELECTOR, refuse
from kafkapy.errors import ConfigError, Error
from kafkapy.metadata.cluster_image import Endpoint
from tests.harness.replica import NODE_ID, ReplicaHarness, batch, broker, partition_image, values_of

REPLICAS = (NODE_ID, 2, 3, 4)
RACKS = {NODE_ID: "a", 2: "b", 3: "b", 4: "c"}
LISTENER = "CLIENTS"


def registration(broker_id, *, fenced=False, listener=LISTENER):
    return broker(broker_id, fenced=fenced)._replace(
        rack=RACKS[broker_id], endpoints={listener: Endpoint(listener, "127.0.0.1", 9092, 0)}
    )


def make_harness(root, selector):
    made = ReplicaHarness(root, brokers=REPLICAS, overrides={"replica.selector.class": selector})
    made.put_brokers(*map(registration, REPLICAS))
    made.put_topic("t", [partition_image(replicas=REPLICAS)])
    made.append(b"a", b"b", b"c")
    for replica_id, offset in ((2, 1), (3, 2), (4, 3)):
        made.fetch(offset, replica_id=replica_id, replica_epoch=100 + replica_id, log_start_offset=0)
    return made


@pytest.fixture
def harness(tmp_path):
    return make_harness(tmp_path, RACK_AWARE_SELECTOR)


def preferred(harness, offset, rack, **fields):
    (result,) = harness.fetch(offset, client_rack=rack, listener=LISTENER, only_leader=False, **fields)
    assert result.error == Error.NONE
    return result.preferred_read_replica


def test_the_leader_serves_its_own_rack_and_racks_without_a_replica(harness):
    assert preferred(harness, 0, "a") == -1
    assert preferred(harness, 0, "d") == -1
    assert preferred(harness, 0, "") == -1


def test_the_most_caught_up_replica_of_the_rack_is_preferred(harness):
    assert preferred(harness, 0, "b") == 3
    harness.fetch(3, replica_id=2, replica_epoch=102, log_start_offset=0)
    assert preferred(harness, 0, "b") == 2


def test_of_equal_ends_the_one_that_was_caught_up_last_is_preferred(harness):
    for replica_id in (3, 2):
        harness.fetch(3, replica_id=replica_id, replica_epoch=100 + replica_id, log_start_offset=0)
        harness.clock.advance(10)
    assert preferred(harness, 0, "b") == 2


def test_a_replica_without_the_offset_is_not_preferred(harness):
    assert preferred(harness, 2, "b") == 3
    assert preferred(harness, 3, "b") == -1
    harness.fetch(3, replica_id=4, replica_epoch=104, log_start_offset=2)
    assert preferred(harness, 1, "c") == -1


def test_a_replica_out_of_the_isr_is_not_preferred(harness):
    harness.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID, 2), partition_epoch=1)])
    assert preferred(harness, 0, "c") == -1
    assert preferred(harness, 0, "b") == 2


def test_a_broker_that_the_client_cannot_reach_is_not_preferred(harness):
    harness.put_brokers(registration(4, fenced=True))
    assert preferred(harness, 0, "c") == -1
    harness.put_brokers(registration(4, listener="OTHER"))
    assert preferred(harness, 0, "c") == -1
    harness.put_brokers(registration(4))
    assert preferred(harness, 0, "c") == 4


def test_the_response_with_a_preferred_replica_has_no_records_and_does_not_wait(harness):
    (result,) = harness.fetch(0, client_rack="c", listener=LISTENER, only_leader=False, max_wait_ms=500)
    assert (result.preferred_read_replica, bytes(result.records)) == (4, b"")
    assert (result.high_watermark, result.log_start_offset) == (1, 0)


def test_a_follower_is_never_referred_to_another_replica(harness):
    (result,) = harness.fetch(1, replica_id=2, replica_epoch=102, client_rack="c", listener=LISTENER)
    assert (result.preferred_read_replica, values_of(result)) == (-1, [b"a", b"b", b"c"])


@pytest.mark.parametrize("selector", ["", LEADER_SELECTOR])
def test_without_the_rack_aware_selector_the_leader_serves_everyone(tmp_path, selector):
    assert preferred(make_harness(tmp_path, selector), 0, "c") == -1


def test_a_follower_serves_consumers_up_to_its_own_high_watermark(harness):
    harness.put_topic("t", [partition_image(replicas=REPLICAS, leader=2, leader_epoch=1, partition_epoch=1)])
    partition = harness.partition()
    partition.log.append_as_follower(batch(b"d", base_offset=3))
    assert (partition.log.high_watermark, partition.log.log_end_offset) == (1, 4)
    (result,) = harness.fetch(0, only_leader=False, client_rack="c", listener=LISTENER)
    assert (result.high_watermark, result.preferred_read_replica) == (1, -1)
    partition.log.high_watermark = 3
    (result,) = harness.fetch(0, only_leader=False)
    assert (values_of(result), result.high_watermark) == ([b"a", b"b", b"c"], 3)
    (result,) = harness.fetch(3, only_leader=False)
    assert (values_of(result), result.error) == ([], Error.NONE)
    (result,) = harness.fetch(0, only_leader=True)
    assert result.error == Error.NOT_LEADER_OR_FOLLOWER


def test_an_unknown_selector_prevents_the_start():
    properties = {"process.roles": "broker,controller", "node.id": "1", "replica.selector.class": "org.example.Select"}
    with pytest.raises(ConfigError, match=r"replica\.selector\.class"):
        refuse(BrokerConfig(properties))
