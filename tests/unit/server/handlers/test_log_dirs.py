"""DescribeLogDirs: directories, sizes, free space; AlterReplicaLogDirs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kafkapy.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkapy.server.handlers.log_dirs import handle_alter_replica_log_dirs, handle_describe_log_dirs
from kafkapy.types import TopicPartition
from tests.harness.handler import HandlerHarness
from tests.harness.replica import batch, partition_image


@pytest.fixture
def harness(tmp_path):
    made = HandlerHarness(tmp_path, directories=2)
    made.put_topic("t", [partition_image(), partition_image()])
    made.append(b"a")
    return made


def ask(harness, topics, version=5):
    return harness.send(handle_describe_log_dirs, DescribeLogDirsRequest(topics=topics), version).response


@pytest.mark.parametrize("version", range(6))
def test_all_directories_and_partitions_are_described(harness, version):
    response = ask(harness, None, version)
    assert [result.log_dir for result in response.results] == [
        directory.path for directory in harness.log_manager.directories
    ]
    found = {
        (topic.name, partition.partition_index): (partition.partition_size, partition.offset_lag)
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
    }
    assert found == {("t", 0): (len(batch(b"a")), 0), ("t", 1): (0, 0)}
    for result in response.results:
        assert (result.total_bytes > 0) == (version >= 4)
        assert result.usable_bytes <= result.total_bytes
        assert not result.is_cordoned


def test_only_the_named_partitions_are_described(harness):
    topic = DescribeLogDirsRequest.DescribableLogDirTopic(topic="t", partitions=[1])
    found = [topic for result in ask(harness, [topic]).results for topic in result.topics]
    assert [(each.name, [p.partition_index for p in each.partitions]) for each in found] == [("t", [1])]


def test_an_offline_directory(harness):
    lost = harness.partition().log.directory.path
    harness.log_manager.take_offline(lost, OSError(5, "Input/output error"))
    errors = {result.log_dir: (result.error_code, len(result.topics)) for result in ask(harness, None).results}
    assert errors.pop(lost) == (Error.KAFKA_STORAGE_ERROR, 0)
    assert set(errors.values()) == {(0, 1)}


def test_moves_reach_their_manager_and_return_its_codes(harness):
    """The last directory of a repeated partition counts; the response has the error codes of the manager of moves."""
    asked = []

    def alter(directories):
        asked.append(directories)
        return {partition: Error.NONE if partition.partition else Error.LOG_DIR_NOT_FOUND for partition in directories}

    harness.services.alter_log_dirs = SimpleNamespace(alter=alter)
    to = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
    request = AlterReplicaLogDirsRequest(
        dirs=[
            to(path="/a", topics=[topic(name="t", partitions=[0, 1])]),
            to(path="/b", topics=[topic(name="t", partitions=[0])]),
        ]
    )
    for version in range(3):
        response = harness.send(handle_alter_replica_log_dirs, request, version).response
        (found,) = response.results
        assert [(each.partition_index, each.error_code) for each in found.partitions] == [
            (0, Error.LOG_DIR_NOT_FOUND),
            (1, Error.NONE),
        ]
    assert asked == [{TopicPartition("t", 0): "/b", TopicPartition("t", 1): "/a"}] * 3


def test_a_future_replica_is_shown_with_its_lag(harness):
    current = harness.partition().log
    (target,) = [each for each in harness.log_manager.directories if each is not current.directory]
    harness.log_manager.create_future_log(current, target)
    shown = {
        (result.log_dir, partition.is_future_key): partition.offset_lag
        for result in ask(harness, None).results
        for topic in result.topics
        for partition in topic.partitions
        if partition.partition_index == 0
    }
    assert shown == {(current.directory.path, False): 0, (target.path, True): 1}
