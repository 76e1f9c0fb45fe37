"""A directory that Apache Kafka wrote: read in every codec, and its indexes and snapshots rebuilt byte for byte."""

import filecmp
import shutil

import pytest

from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.storage.log_recovery import LogLoader
from kafkapy.types import TopicPartition
from tests.harness.log import LogHarness, topic_config, values_of
from tests.peers import ApacheKafka

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 12_000
SETTINGS = {"log.segment.bytes": "1048576", "log.index.interval.bytes": "1024"}


@pytest.fixture(scope="module")
def directory(kafka_43, tmp_path_factory):
    """Returns the log directory of a stopped broker that served an idempotent producer per codec and a transactional
    one."""
    with ApacheKafka(kafka_43, tmp_path_factory.mktemp("kafka"), properties=SETTINGS) as kafka:
        for codec in CODECS:
            produce(kafka, codec, RECORDS, f"compression.type={codec}")
        produce(kafka, "transactions", 500, "transactional.id=x")
    return kafka.log_dirs[0]


def produce(kafka, topic, count, *properties):
    arguments = ["--topic", topic, "--num-records", str(count), "--record-size", "200", "--throughput", "-1"]
    properties = [f"bootstrap.servers=localhost:{kafka.port}", *properties]
    kafka.tool("org.apache.kafka.tools.ProducerPerformance", *arguments, "--producer-props", *properties)


def load(directory, topic, *, is_clean):
    harness = LogHarness(directory)
    config = LogConfig(topic_config({"segment.bytes": 1048576, "index.interval.bytes": 1024}))
    log_directory = LogDirectory(str(directory), harness.filesystem)
    path = str(directory / f"{topic}-0")
    partition = TopicPartition(topic, 0)
    return LogLoader(partition, log_directory, path, config, harness.ports, is_clean=is_clean).load()


@pytest.mark.parametrize("topic", [*CODECS, "transactions"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_same_bytes_after_recovery(directory, tmp_path, topic, is_clean):
    shutil.copytree(directory / f"{topic}-0", tmp_path / f"{topic}-0")
    log = load(tmp_path, topic, is_clean=is_clean)
    offset = 0
    while offset < log.log_end_offset:
        found = values_of(log.read(offset, 1 << 20))
        assert [number for number, _ in found] == list(range(found[0][0], found[-1][0] + 1))
        assert found[0][0] == offset
        offset = found[-1][0] + 1
    assert offset >= (RECORDS if topic in CODECS else 500)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == log.log_end_offset
    log.close()
    comparison = filecmp.dircmp(directory / f"{topic}-0", tmp_path / f"{topic}-0")
    assert (comparison.left_only, comparison.right_only) == ([], [])
    names = comparison.common_files
    assert filecmp.cmpfiles(directory / f"{topic}-0", tmp_path / f"{topic}-0", names, shallow=False)[0] == names
