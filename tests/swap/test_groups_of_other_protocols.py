"""Share and streams groups that Apache Kafka left in a directory: kafkapy answers requests for them as Kafka does.

The groups are empty: kafkapy does not serve their protocols, so it cannot know whether a member is alive.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.consumer_group_client import ConsumerGroupClient
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess
from tests.swap.swap import HEAP

SHARE, STREAMS = "share", "streams"
# The groups that requests change, one group for each broker.
DELETED, TAKEN_OVER = ("share-0", "share-1"), ("streams-0", "streams-1")
PROPERTIES = {"group.initial.rebalance.delay.ms": "0", "transaction.partition.verification.enable": "false"}


def requests(client: ConsumerGroupClient, group: str) -> None:
    """Sends each request that names a group and that Apache Kafka refuses without changing anything."""
    client.describe("consumer description", group)
    client.describe_classic("classic description", group)
    client.list("listed", group)
    client.heartbeat("consumer heartbeat", group, member_epoch=1)
    client.heartbeat("consumer leaves", group, member_epoch=-1)
    client.beat("classic heartbeat", group, "m", 1)
    client.sync("classic sync", group, "m", 1)
    client.leave("classic leave", group, ("m", None))
    client.commit("member commits", group, "m", 1)
    client.commit_transactional("member commits in a transaction", group, "m", 1)
    client.fetch("member fetches", group, "m", 1)
    client.join("classic join of a known member", group, "m")


def requests_to_a_share_group(client: ConsumerGroupClient) -> None:
    client.join("classic join", SHARE)
    client.join("classic join, old version", SHARE, version=3)
    client.join_heartbeat("consumer join", SHARE)
    client.commit("commit", SHARE, "", -1)
    client.commit("commit, old version", SHARE, "", -1, version=8)
    client.commit_transactional("transactional commit", SHARE)
    client.fetch("fetch", SHARE)
    client.delete_offset("offset deletion", SHARE)


@pytest.mark.peer
@pytest.mark.timeout(300)
def test_kafkapy_answers_as_the_broker_before(kafka_43: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(kafka_43, tmp_path, dynamic=True, heap=HEAP, properties=PROPERTIES)
    ours = BrokerProcess(tmp_path, config=kafka.config, port=kafka.port)
    said: dict[ServerProcess, list[str]] = {}
    for turn, server in enumerate((kafka, ours)):
        with server:
            client = ConsumerGroupClient(server.port, "topic" if server is kafka else "another")
            if server is kafka:
                create_groups(client)
            else:
                client.ask_about("topic")
            client.said.clear()
            for group in (SHARE, STREAMS):
                requests(client, group)
            requests_to_a_share_group(client)
            client.join("classic join takes an empty streams group over", TAKEN_OVER[turn], version=3)
            client.delete("deletion of a share group", DELETED[turn])
            said[server] = client.said
            client.close()
            server.kill()
    assert said[ours] == said[kafka]


def create_groups(client: ConsumerGroupClient) -> None:
    for group in (SHARE, *DELETED):
        client.join_share_group(group, "m")
        client.leave_share_group(group, "m")
    for group in (STREAMS, *TAKEN_OVER):
        client.join_streams_group(group, "m")
        client.leave_streams_group(group, "m")
