"""Our tools with `--zookeeper`, typed as in the documentation of Kafka 0.8 to 2.8."""

from __future__ import annotations

import json

import pytest

from kafkapy.client.producer import Producer
from tests.tools.tool_host import run_ours
from tests.zookeeper.listening_broker import ListeningBroker

CHROOT = "/kafka"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with ListeningBroker(tmp_path_factory.mktemp("flag"), zookeeper_listener_view_chroot=CHROOT) as broker:
        yield broker


def out(broker, command, code=0):
    tool, *words = command.split()
    done = run_ours(tool, "--zookeeper", broker.zookeeper + CHROOT, *words)
    assert done.code == code, done
    return done.out


def test_topics_are_created_altered_and_deleted(broker):
    words = "--create --topic orders --partitions 2 --replication-factor 1"
    assert out(broker, f"topics {words}") == "Created topic orders.\n"
    assert "orders\n" in out(broker, "topics --list")
    altered = out(broker, "topics --alter --topic orders --config retention.ms=86400000 --partitions 3")
    assert altered.splitlines() == [
        "WARNING: Altering topic configuration from this script has been deprecated and may be removed in future "
        "releases.",
        "         Going forward, please use kafka-configs.sh for this functionality",
        "Updated config for topic orders.",
        "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the "
        "messages will be affected",
        "Adding partitions succeeded!",
    ]
    described = out(broker, "topics --describe --topic orders")
    assert "PartitionCount: 3" in described
    assert "retention.ms=86400000" in described
    assert "Updated config for topic orders." in out(
        broker, "topics --alter --topic orders --delete-config retention.ms"
    )
    assert "retention.ms" not in out(broker, "topics --describe --topic orders")
    assert "Unknown topic config name: wrong" in out(broker, "topics --alter --topic orders --config wrong=1", code=1)
    assert out(broker, "topics --delete --topic orders").splitlines() == [
        "Topic orders is marked for deletion.",
        "Note: This will have no impact if delete.topic.enable is not set to true.",
    ]


def test_the_other_tools_find_the_brokers(broker, tmp_path):
    out(broker, "topics --create --topic found --partitions 1 --replication-factor 1")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("found", value=b"record")
    assert "record\n" in out(broker, "console-consumer --topic found --from-beginning --max-messages 1")
    out(broker, "configs --alter --entity-type topics --entity-name found --add-config max.message.bytes=128000")
    assert "max.message.bytes=128000" in out(broker, "configs --describe --entity-type topics --entity-name found")
    out(broker, "configs --alter --entity-type clients --entity-name me --add-config producer_byte_rate=1024")
    assert "producer_byte_rate=1024" in out(broker, "configs --describe --entity-type clients --entity-name me")
    out(broker, "preferred-replica-election")
    plan = tmp_path / "plan.json"
    move = {"topic": "found", "partition": 0, "replicas": [1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    verified = out(broker, f"reassign-partitions --verify --reassignment-json-file {plan}")
    assert "Reassignment of partition found-0 is completed." in verified
    counted = out(broker, "consumer-perf-test --topic found --num-records 1 --hide-header")
    assert counted.count("\n") == 1


def test_the_authorizers_zookeeper_leads_to_the_brokers(broker):
    """This broker has no authorizer, which is what it answers."""
    done = run_ours("acls", "--authorizer-properties", f"zookeeper.connect={broker.zookeeper}{CHROOT}", "--list")
    assert done.code == 1
    assert "No Authorizer is configured" in done.out + done.err


def test_a_cluster_without_brokers_and_two_sources_are_refused(broker):
    done = run_ours("topics", "--zookeeper", broker.zookeeper, "--list")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"No broker is registered in /brokers/ids of ZooKeeper at {broker.zookeeper}.\n"
    both = ("--zookeeper", broker.zookeeper, "--bootstrap-server", broker.bootstrap)
    done = run_ours("topics", *both, "--list")
    assert done.code == 1
    assert done.err.startswith("Only one of --bootstrap-server or --zookeeper must be specified\n")
    done = run_ours("get-offsets", "--zookeeper", broker.zookeeper, "--topic", "found")
    assert done.code == 1
    assert done.err.startswith("zookeeper is not a recognized option\n")
