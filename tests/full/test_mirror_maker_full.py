"""MirrorMaker 2 of Apache Kafka 4.3, which copies between Apache Kafka and kafkapy in both directions at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client import Consumer, OffsetAndMetadata, Producer, TopicPartition
from kafkapy.client.admin import Admin, ConfigResource, ResourceType
from tests.broker_process import BrokerProcess
from tests.ecosystem.programs import (
    JavaProgram,
    TopicReader,
    create_topics,
    maven_jars,
    wait_until,
    write_properties,
)
from tests.peers import ApacheKafka

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(1800)]

PARTITIONS = 3
COUNT = 1500
CONFIGS = {"retention.ms": "3153600000000", "cleanup.policy": "compact,delete"}
LOGGING = (
    "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
    "org.apache.logging.log4j:log4j-core:2.24.3",
)
# The group has read this many records of partitions 1 and 2, and has no offset in partition 0.
HALF, ALL = 250, 500


def settings(addresses: dict[str, str]) -> dict[str, str]:
    found = {"clusters": ",".join(addresses)}
    found |= {f"{name}.bootstrap.servers": address for name, address in addresses.items()}
    found |= {"apache->kafkapy.enabled": "true", "kafkapy->apache.enabled": "true"}
    found |= {"topics": "from-.*", "groups": "group-.*", "sync.group.offsets.enabled": "true", "offset.lag.max": "0"}
    found |= {"refresh.topics.interval.seconds": "3", "refresh.groups.interval.seconds": "3"}
    found |= {"sync.group.offsets.interval.seconds": "2", "emit.checkpoints.interval.seconds": "2"}
    internal = ["", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."]
    internal += ["offset.storage.", "status.storage.", "config.storage."]
    return found | {f"{name}replication.factor": "1" for name in internal}


def produce(bootstrap: str, topic: str, begin: int, end: int) -> None:
    with Producer({"bootstrap.servers": bootstrap, "enable.idempotence": "true"}) as producer:
        for number in range(begin, end):
            producer.send(
                topic,
                f"value {number}",
                key=f"key {number}",
                partition=number % PARTITIONS,
                timestamp=1_700_000_000_000 + number,
                headers=[("number", str(number).encode()), ("empty", None)],
            )


def contents(bootstrap: str, topic: str, count: int) -> dict[int, list[object]]:
    """Waits until the topic has `count` distinct records; returns those of each partition in their order."""
    with TopicReader(bootstrap, topic) as reader:

        def found() -> dict[tuple[object, ...], None]:
            return {
                (each.partition, each.key, each.value, each.timestamp, tuple(each.headers)): None
                for each in reader.read()
            }

        wait_until(lambda: len(found()) >= count, lambda: f"{len(found())} of {count} in {topic}")
        return {number: [each for each in found() if each[0] == number] for number in range(PARTITIONS)}


def committed(bootstrap: str, group: str, topic: str) -> list[int | None]:
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    with Consumer({"bootstrap.servers": bootstrap, "group.id": group}) as consumer:
        found = consumer.committed(partitions)
    return [known.offset if (known := found[each]) else None for each in partitions]


def test_records_configurations_and_offsets_are_copied_both_ways(tmp_path: Path, kafka_43: Path) -> None:
    jars = maven_jars("mirror-maker", "org.apache.kafka:connect-mirror:4.3.0", *LOGGING)
    with ApacheKafka(kafka_43, tmp_path / "apache") as apache, BrokerProcess(tmp_path / "kafkapy") as kafkapy:
        ways = {"apache": (apache, kafkapy), "kafkapy": (kafkapy, apache)}
        for name, (origin, _) in ways.items():
            create_topics(origin.bootstrap, {f"from-{name}": PARTITIONS}, CONFIGS)
            produce(origin.bootstrap, f"from-{name}", 0, COUNT)
            offsets = {TopicPartition(f"from-{name}", 1): OffsetAndMetadata(HALF)}
            offsets[TopicPartition(f"from-{name}", 2)] = OffsetAndMetadata(ALL)
            with Consumer({"bootstrap.servers": origin.bootstrap, "group.id": f"group-{name}"}) as consumer:
                consumer.commit(offsets)
        path = write_properties(
            tmp_path / "mm2.properties", settings({"apache": apache.bootstrap, "kafkapy": kafkapy.bootstrap})
        )
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        with JavaProgram(tmp_path / "mirror", jars, main, str(path)) as mirror:
            for name, (origin, target) in ways.items():
                check_copy(name, origin.bootstrap, target.bootstrap, COUNT)
                check_group(name, target.bootstrap, mirror)
            for name, (origin, _) in ways.items():
                produce(origin.bootstrap, f"from-{name}", COUNT, 2 * COUNT)
            kafkapy.kill()
            produce(apache.bootstrap, "from-apache", 2 * COUNT, 3 * COUNT)
            kafkapy.start()
            produce(kafkapy.bootstrap, "from-kafkapy", 2 * COUNT, 3 * COUNT)
            for name, (origin, target) in ways.items():
                check_copy(name, origin.bootstrap, target.bootstrap, 3 * COUNT)
            errors = [line for line in mirror.log().splitlines() if " ERROR " in line and "ACL" in line]
            assert errors == []


def check_copy(name: str, origin: str, target: str, count: int) -> None:
    copy = f"{name}.from-{name}"
    assert contents(target, copy, count) == contents(origin, f"from-{name}", count)
    with Admin({"bootstrap.servers": target}) as admin:

        def are_configs_copied() -> bool:
            (found,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, copy)]).check().values()
            return {key: found[key].value for key in CONFIGS} == CONFIGS

        wait_until(are_configs_copied)


def check_group(name: str, target: str, mirror: JavaProgram) -> None:
    """Checks that the group lost nothing and that its offset at the end of a partition was translated exactly."""
    copy = f"{name}.from-{name}"
    wait_until(lambda: committed(target, f"group-{name}", copy)[2] == ALL, lambda: mirror.log()[-8000:])
    none, half, everything = committed(target, f"group-{name}", copy)
    assert none is None
    # MirrorMaker stores few pairs of offsets, so that it translates an old offset to an earlier one or not at all.
    assert half is None or 0 < half <= HALF
    assert everything == ALL
