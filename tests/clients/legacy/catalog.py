"""The table of the clients that are tested against the broker; docs/compatibility.md shows it.

This module imports no package that has to be installed.
"""

from __future__ import annotations

from typing import NamedTuple

BEFORE_ZSTD = ("none", "gzip", "snappy", "lz4")
ALL_CODECS = (*BEFORE_ZSTD, "zstd")


class TriedClient(NamedTuple):
    """A release of a library or tool, the broker version that it assumes, and the parts of records that it supports."""

    name: str
    product: str
    release: str
    driver: str  # the kind of client that clients.py creates
    speaks: str = ""  # the assumed broker version; "" if the client detects it
    settings: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ALL_CODECS
    writes_headers: bool = True
    reads_headers: bool = True
    timestamps: bool = True
    writes_null_headers: bool = True
    reads_null_headers: bool = True
    writes_empty_records: bool = True  # a record without key and value
    is_console: bool = False  # supports only text, and chooses timestamps and maybe partitions
    groups: bool = True


def _kafka_python(release: str) -> list[TriedClient]:
    """Returns the client with its default settings, and with the API versions of each kind of old broker."""
    rows = []
    for version in ("", "0.8.2", "0.9", "0.10", "0.11"):
        knows_headers = version in ("", "0.11")
        # the old releases request headers from version (0, 11, 0) on, which is greater than (0, 11)
        asks_for_headers = version == "" or (version == "0.11" and release not in ("1.4.7", "2.0.2"))
        rows.append(
            TriedClient(
                name=f"kafka-python-{release}" + (f"-as-{version}" if version else ""),
                product="kafka-python",
                release=release,
                driver="kafka-python",
                speaks=f"`api_version={version}`" if version else "",
                settings=(f"api_version={version}",) if version else (),
                codecs=BEFORE_ZSTD if version or release == "1.4.7" else ALL_CODECS,
                writes_headers=knows_headers,
                reads_headers=asks_for_headers,
                timestamps=version not in ("0.8.2", "0.9"),
                writes_null_headers=False,
                reads_null_headers=release not in ("1.4.7", "2.0.2"),
                writes_empty_records=False,
            )
        )
    return rows


def _librdkafka(driver: str, library: str, release: str, *, is_console: bool) -> list[TriedClient]:
    return [
        TriedClient(
            name=f"{driver}-as-{fallback}",
            product=library,
            release=release,
            driver=driver,
            speaks=f"`api.version.request=false`, `broker.version.fallback={fallback}`",
            settings=("api.version.request=false", f"broker.version.fallback={fallback}"),
            codecs=BEFORE_ZSTD,
            writes_headers=False,
            reads_headers=False,
            timestamps=fallback == "0.10.0",
            is_console=is_console,
            groups=fallback != "0.8.2",
        )
        for fallback in ("0.8.2", "0.9.0", "0.10.0")
    ]


def _java(release: str, *, codecs: tuple[str, ...] = ALL_CODECS, headers: bool = True) -> TriedClient:
    library = "Java `kafka-clients`"
    return TriedClient(
        f"java-{release}", library, release, "java", codecs=codecs, writes_headers=headers, reads_headers=headers
    )


def _shells(name: str, library: str) -> TriedClient:
    return TriedClient(
        name,
        library,
        "0.10.1.1",
        driver=name,
        codecs=BEFORE_ZSTD,
        writes_headers=False,
        reads_headers=False,
        is_console=True,
        groups=False,
    )


TRIED_CLIENTS = (
    *_kafka_python("3.0.12"),
    *_kafka_python("2.0.2"),
    *_kafka_python("1.4.7"),
    _java("4.3.0"),
    _java("2.8.2"),
    _java("1.1.1", codecs=BEFORE_ZSTD),
    _java("0.10.1.1", codecs=BEFORE_ZSTD, headers=False),
    _shells("old-shells", "Scala shells: ConsoleProducer `--old-producer`, SimpleConsumerShell"),
    _shells("new-shells", "Scala shells: ConsoleProducer, ConsoleConsumer `--new-consumer`"),
    TriedClient("kafkajs", "KafkaJS", "2.2.4", "kafkajs", writes_null_headers=False),
    TriedClient("franz-go", "franz-go", "1.16.1", "franz-go"),
    *_librdkafka("confluent-kafka", "librdkafka in confluent-kafka", "2.6 and later", is_console=False),
    *_librdkafka("kcat", "librdkafka in kcat", "1.x", is_console=True),
)
# Tested by tests/clients/test_round_trip.py and test_groups.py.
TRIED_AS_INSTALLED = (
    ("aiokafka", "0.12 and later"),
    ("librdkafka in confluent-kafka", "2.6 and later"),
    ("librdkafka in kcat", "1.x"),
    ("Java `kafka-clients`", "3.9.1"),
    ("Apache Kafka's console tools", "4.3.0"),
)
BY_NAME = {tried.name: tried for tried in TRIED_CLIENTS}
