"""The data source and a job on topics of a broker with TLS and SASL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import word_count
from kafkapy.client import Consumer, Producer
from kafkapy.client.admin import Admin, NewTopic
from tests.harness.certificates import CertificateAuthority
from tests.peers import kafka_directory
from tests.security.secured_kafka import SecuredKafka, sasl_client

WORDS = ["hello kafka", "hello"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Returns the keys of a client of a running Apache Kafka with SASL_SSL."""
    authority = CertificateAuthority(tmp_path_factory.mktemp("authority"))
    with SecuredKafka(kafka_directory("4.3.0"), tmp_path_factory.mktemp("kafka"), authority) as kafka:
        yield {
            "bootstrap.servers": kafka.address("SASL_SSL"),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": authority.certificate_file.read_text().replace("\n", " "),
            **sasl_client("SCRAM-SHA-512"),
        }


@pytest.fixture
def topics(keys: dict[str, str], request: pytest.FixtureRequest) -> tuple[str, str]:
    """Returns the names of a topic with records and of an empty one."""
    full, empty = f"{request.node.name}-full", f"{request.node.name}-empty"
    with Admin(keys) as admin:
        admin.create_topics([NewTopic(full, 2, 1), NewTopic(empty, 1, 1)])
    with Producer(keys) as producer:
        for text in WORDS:
            producer.send(full, text)
    return full, empty


def read_values(keys: dict[str, str], topic: str, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    with Consumer(keys, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        for record in consumer:
            found.append(record.value)
            if len(found) == count:
                break
    return found


def test_records_are_read_and_written(spark: Any, keys: dict[str, str], topics: tuple[str, str]) -> None:
    full, empty = topics
    options = {f"kafka.{key}": value for key, value in keys.items()}
    rows = spark.read.format("kafkapy").options(**options, subscribe=full).load()
    assert sorted(bytes(row.value).decode() for row in rows.select("value").collect()) == sorted(WORDS)
    rows.select("value").write.format("kafkapy").options(**options, topic=empty).mode("append").save()
    assert sorted(read_values(keys, empty, 2)) == sorted(text.encode() for text in WORDS)  # type: ignore[type-var]


def test_a_job_reads_the_keys_from_a_file(
    spark: Any, keys: dict[str, str], topics: tuple[str, str], tmp_path: Path
) -> None:
    full, empty = topics
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items() if key != "bootstrap.servers"))
    sink = ["--sink", "topic", "--output-topic", empty, "--checkpoint", f"{tmp_path}/checkpoint"]
    words = ["--bootstrap-server", keys["bootstrap.servers"], "--topic", full, "--command-config", str(path)]
    word_count.main([*words, "--shuffle-partitions", "2", "--trigger", "available-now", *sink])
    counts = [json.loads(value or b"") for value in read_values(keys, empty, 2)]
    assert {each["word"]: each["count"] for each in counts} == {"hello": 2, "kafka": 1}
