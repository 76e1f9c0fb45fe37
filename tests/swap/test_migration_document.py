"""Migration from Apache Kafka to kafkapy and back, with the unchanged commands of docs/operations.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import create_topic
from tests.clients.kcat_client import KcatClient
from tests.clients.records import SentRecord, make_records
from tests.peers import ApacheKafka
from tests.swap.migration_document import Machine, commands_of
from tests.swap.swap import HEAP

PARTITIONS = 3
GROUP = "readers"
WAIT_FOR_KAFKA = 'until kafkapy topics --bootstrap-server "$BROKER" --list; do sleep 0.2; done\n'

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]


@pytest.fixture
def machine(kafka_43: Path, tmp_path: Path) -> Iterator[Machine]:
    kafka = ApacheKafka(kafka_43, tmp_path / "apache", dynamic=True, heap=HEAP)
    kafka.format()
    machine = Machine(tmp_path, kafka)
    yield machine
    machine.end()


def write(bootstrap: str, topic: str, seed: int) -> list[tuple[bytes | None, bytes | None]]:
    """Creates a topic with records, reads some of them in a group, and returns the records."""
    records = make_records(100, PARTITIONS, seed, text=True)
    create_topic(bootstrap, topic, PARTITIONS)
    KcatClient().produce(bootstrap, topic, "lz4", records)
    KcatClient().consume_in_group(bootstrap, topic, GROUP, 10)
    return content(records)


def content(records: list[SentRecord]) -> list[tuple[bytes | None, bytes | None]]:
    return sorted((record.key, record.value) for record in records)


def read(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return content(KcatClient().consume(bootstrap, topic, PARTITIONS, 100))


def test_there_and_back(machine: Machine):
    bootstrap = machine.kafka.bootstrap
    machine.run(f'"$KAFKA"/bin/kafka-server-start.sh -daemon "$CONFIG"\n{WAIT_FOR_KAFKA}')
    first = write(bootstrap, "first", 1)

    printed = machine.run(commands_of("Migration from Apache Kafka"))
    assert "kafkapy" in printed
    assert (machine.directory / "kafkapy.log").read_text().count("ready") == 1
    assert read(bootstrap, "first") == first
    second = write(bootstrap, "second", 2)

    machine.run(commands_of("Migration back to Apache Kafka"))
    assert "Kafka Server started" in (machine.directory / "kafka.log").read_text()
    assert read(bootstrap, "first") == first
    assert read(bootstrap, "second") == second
    assert write(bootstrap, "third", 3) == read(bootstrap, "third")
    machine.run('"$KAFKA"/bin/kafka-server-stop.sh\nuntil [ -e "$DATA/.kafka_cleanshutdown" ]; do sleep 0.2; done\n')
