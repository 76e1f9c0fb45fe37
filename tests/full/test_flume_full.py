"""Two Flume agents of a published example: from a file to a topic, and from there to files.

The second agent has a Kafka channel and the HDFS sink, which writes to a local file system.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.ecosystem.programs import JavaProgram, TopicReader, create_topics, maven_jars, wait_until, write_properties
from tests.full.conftest import NewServer

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(1800)]

FLUME = (
    "org.apache.flume:flume-ng-node:1.11.0",
    "org.apache.flume.flume-ng-sources:flume-kafka-source:1.11.0",
    "org.apache.flume.flume-ng-sinks:flume-ng-kafka-sink:1.11.0",
    "org.apache.flume.flume-ng-channels:flume-kafka-channel:1.11.0",
    "org.apache.flume.flume-ng-sinks:flume-hdfs-sink:1.11.0",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
    "org.apache.logging.log4j:log4j-core:2.24.3",
)
FIRST_LINE = "flume 实时从文件采集数据写入 Kafka"
LAST_LINE = "Flume 收集日志写入到 Kafka,再从 Kafka 采集日志写入到 HDFS"
LINES = 300
# A folder for each hour, and a file whose name has the time of its creation.
STORED_FILE = re.compile(r"\d{4}-\d\d-\d\d/\d\d/test\.\d{13}\.txt")


def collecting_agent(bootstrap: str, source: Path) -> dict[str, str]:
    """Returns the settings of the agent that follows a file and writes its lines to `flume-kafka`."""
    return {
        "agent.sources": "sc",
        "agent.channels": "chl",
        "agent.sinks": "sk",
        "agent.sources.sc.type": "exec",
        "agent.sources.sc.command": f"tail -n +1 -f {source}",
        "agent.sources.sc.channels": "chl",
        "agent.channels.chl.type": "memory",
        "agent.channels.chl.capacity": "1000",
        "agent.channels.chl.transactionCapacity": "1000",
        "agent.sinks.sk.channel": "chl",
        "agent.sinks.sk.type": "org.apache.flume.sink.kafka.KafkaSink",
        "agent.sinks.sk.kafka.bootstrap.servers": bootstrap,
        "agent.sinks.sk.kafka.topic": "flume-kafka",
        "agent.sinks.sk.kafka.producer.acks": "1",
    }


def storing_agent(bootstrap: str, directory: Path) -> dict[str, str]:
    """Returns the settings of the agent that reads `flume-kafka` and stores its lines in a folder."""
    source, channel, sink = (
        f"kafka-agent.{each}" for each in ("sources.kafka", "channels.kafka-channel", "sinks.hdfs")
    )
    settings = {
        "kafka-agent.sources": "kafka",
        "kafka-agent.channels": "kafka-channel",
        "kafka-agent.sinks": "hdfs",
        f"{source}.type": "org.apache.flume.source.kafka.KafkaSource",
        f"{source}.kafka.bootstrap.servers": bootstrap,
        f"{source}.kafka.topics": "flume-kafka",
        f"{source}.kafka.consumer.group.id": "kafka-flume-hdfs",
        f"{source}.kafka.consumer.auto.offset.reset": "earliest",
        f"{source}.batchSize": "10000",
        f"{source}.batchDurationMillis": "1000",
        f"{source}.channels": "kafka-channel",
        f"{channel}.type": "org.apache.flume.channel.kafka.KafkaChannel",
        f"{channel}.kafka.bootstrap.servers": bootstrap,
        f"{channel}.kafka.topic": "kafka-channel",
        f"{channel}.kafka.consumer.group.id": "kafka-channel",
        f"{sink}.type": "hdfs",
        f"{sink}.channel": "kafka-channel",
    }
    stored = {
        "path": f"file://{directory}/%Y-%m-%d/%H",
        "filePrefix": "test",
        "fileSuffix": ".txt",
        "inUseSuffix": ".tmp",
        "useLocalTimeStamp": "true",
        "rollInterval": "0",
        "rollSize": "0",
        "rollCount": "0",
        "batchSize": "1000",
        "fileType": "DataStream",
        "writeFormat": "Text",
        "idleTimeout": "0",
        "threadsPoolSize": "15",
        "callTimeout": "60000",
        "useRawLocalFileSystem": "true",  # so that written lines are visible before the file is closed
    }
    return settings | {f"{sink}.hdfs.{name}": value for name, value in stored.items()}


def test_each_line_of_the_file_arrives_through_both_agents(tmp_path: Path, new_server: NewServer) -> None:
    jars = maven_jars("flume", *FLUME)
    source, output = tmp_path / "test.log", tmp_path / "output"
    output.mkdir()
    source.write_text(FIRST_LINE + "\n")

    def agent(name: str, settings: dict[str, str]) -> JavaProgram:
        path = write_properties(tmp_path / f"{name}.properties", settings)
        arguments = ("--conf-file", str(path), "--name", name, "--no-reload-conf")
        return JavaProgram(
            tmp_path / name, jars, "org.apache.flume.node.Application", *arguments, options=["-Dfile.encoding=UTF-8"]
        )

    def stored() -> list[str]:
        return [line for file in output.glob("*/*/test.*") for line in file.read_text().splitlines()]

    def append(*lines: str) -> None:
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    with new_server() as broker:
        create_topics(broker.bootstrap, {"flume-kafka": 3, "kafka-channel": 1})
        with (
            agent("agent", collecting_agent(broker.bootstrap, source)) as first,
            agent("kafka-agent", storing_agent(broker.bootstrap, output)) as second,
        ):
            with TopicReader(broker.bootstrap, "flume-kafka") as topic:
                topic.wait_for(1)
                assert topic.values == [FIRST_LINE.encode()]
            wait_until(lambda: FIRST_LINE in stored(), second.log)
            append(*(f"line {number}" for number in range(LINES)))
            broker.kill()
            append(*(f"line {number}" for number in range(LINES, 2 * LINES)))
            broker.start()
            append(LAST_LINE)
            expected = {FIRST_LINE, LAST_LINE, *(f"line {number}" for number in range(2 * LINES))}
            # An agent sends a batch again whose answer it did not get.
            wait_until(lambda: {*stored()} == expected, lambda: first.log()[-4000:] + second.log()[-4000:])
            second.stop()
        # A file that never rolls has the suffix .tmp until the agent ends.
        files = [str(file.relative_to(output)) for file in output.glob("*/*/*")]
        assert files and all(STORED_FILE.fullmatch(name) for name in files), files
