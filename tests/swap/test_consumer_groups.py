"""Consumer groups of KIP-848 in a directory that passes to another broker: members get their partitions back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.consumer_group_client import ConsumerGroupClient
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess
from tests.swap.dump import dump
from tests.swap.swap import HEAP

PROPERTIES = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": "60000",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.mark.peer
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_begun_by_kafka", [False, True], ids=["kafkapy-first", "kafka-first"])
def test_members_go_on_with_the_next_broker(is_begun_by_kafka: bool, kafka_43: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(kafka_43, tmp_path, dynamic=True, heap=HEAP, properties=PROPERTIES)
    ours = BrokerProcess(tmp_path, config=kafka.config, port=kafka.port)
    turns: list[ServerProcess] = [kafka, ours] if is_begun_by_kafka else [ours, kafka, ours]
    held: list[list[int]] = []
    for turn, server in enumerate(turns):
        with server:
            client = ConsumerGroupClient(server.port, "topic") if turn == 0 else follow(server.port)
            if turn == 0:
                held = begin(client)
            else:
                assert go_on(client, turn) == held
            for number in range(2):
                client.heartbeat("away", member=f"m{turn}{number}", instance_id=f"i{number}", member_epoch=-2)
            client.close()
            server.kill()
        if server is ours:
            decode(kafka_43, kafka.log_dirs[0])


def follow(port: int) -> ConsumerGroupClient:
    client = ConsumerGroupClient(port, "topic-of-another-turn")
    client.ask_about("topic")
    return client


def begin(client: ConsumerGroupClient) -> list[list[int]]:
    """Joins two static members that share the topic, and a member of another group that subscribes by a regular
    expression."""
    client.join_heartbeat("one", member="m00", instance_id="i0")
    client.join_heartbeat("two", member="m01", instance_id="i1")
    client.heartbeat("one revokes", member="m00", instance_id="i0", member_epoch=2)
    one = client.heartbeat("one has revoked", member="m00", instance_id="i0", member_epoch=2, owned=[0, 1])
    two = client.heartbeat("two", member="m01", instance_id="i1", member_epoch=3)
    assert (one.member_epoch, two.member_epoch) == (3, 3)
    client.commit("one commits", "g", "m00", 3)
    wanted = {"subscribed_topic_names": None, "subscribed_topic_regex": "topic"}
    client.join_heartbeat("by expression", "expression", "r", **wanted)
    return client.assigned("g")


def go_on(client: ConsumerGroupClient, turn: int) -> list[list[int]]:
    """Lets the members return under new ids, and checks that they get the same partitions."""
    client.said.clear()
    client.fetch("committed", "g")
    assert client.said == ["committed: 0 [(5, 0)]"]
    before = client.assigned("g")
    for number in range(2):
        answer = client.join_heartbeat("back", member=f"m{turn}{number}", instance_id=f"i{number}")
        assert answer.error_code == 0, client.said[-1]
        assert [sorted(entry.partitions) for entry in answer.assignment.topic_partitions] == [before[number]]
    return before


def decode(kafka_43: Path, log_dir: Path) -> None:
    """Checks that Apache Kafka's tool reads kafkapy's records of every type."""
    segments = [path for path in sorted(log_dir.glob("__consumer_offsets-*/*.log")) if path.stat().st_size]
    decoded = dump(kafka_43, segments, "--offsets-decoder")
    for kind in ("1", "3", "5", "6", "7", "8", "16"):
        assert f'"type":"{kind}"' in decoded, kind
    assert '"assignmentEpochs":[' in decoded
