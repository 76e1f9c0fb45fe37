"""The appenders of Log4j 1 (Kafka 0.10.1.1) and Log4j 2 write to kafkapy, which is killed between two records."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.ecosystem.programs import TopicReader, create_topics, maven_jars
from tests.server_process import ServerProcess

PROGRAM = Path(__file__).with_name("Log4jProducer.java")
LOG4J_1 = ("org.apache.kafka:kafka-log4j-appender:0.10.1.1",)
# Log4j 2 with its bridge for programs of Log4j 1
LOG4J_2 = (
    "org.apache.logging.log4j:log4j-core:2.24.3",
    "org.apache.logging.log4j:log4j-1.2-api:2.24.3",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.slf4j:slf4j-nop:1.7.36",
)
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[ERROR\]-\[Log4jProducer\] (.*)\n?")


def log4j_1_settings(bootstrap: str) -> str:
    """Returns the settings of a published example: only errors go to the topic, synchronously."""
    appender = "log4j.appender.kafka"
    return f"""\
log4j.rootLogger=INFO, kafka
{appender}=org.apache.kafka.log4jappender.KafkaLog4jAppender
{appender}.topic=kafka-log4j
{appender}.brokerList={bootstrap}
{appender}.compressionType=none
{appender}.syncSend=true
{appender}.requiredNumAcks=-1
{appender}.retries=100
{appender}.Threshold=ERROR
{appender}.layout=org.apache.log4j.PatternLayout
{appender}.layout.ConversionPattern=%-d{{yyyy-MM-dd HH\\:mm\\:ss}} [%p]-[%c] %m%n
"""


def log4j_2_settings(bootstrap: str) -> str:
    return f"""\
<Configuration>
  <Appenders>
    <Kafka name="kafka" topic="kafka-log4j" syncSend="true">
      <PatternLayout pattern="%d{{yyyy-MM-dd HH:mm:ss}} [%p]-[%c] %m"/>
      <ThresholdFilter level="ERROR"/>
      <Property name="bootstrap.servers">{bootstrap}</Property>
    </Kafka>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.kafka" level="OFF"/>
    <Root level="INFO"><AppenderRef ref="kafka"/></Root>
  </Loggers>
</Configuration>
"""


@pytest.mark.parametrize(
    ("artifacts", "settings", "option"),
    [(LOG4J_1, log4j_1_settings, "log4j.configuration"), (LOG4J_2, log4j_2_settings, "log4j2.configurationFile")],
    ids=["log4j-1", "log4j-2"],
)
@pytest.mark.peer
@pytest.mark.timeout(600)
def test_only_errors_become_records(tmp_path, artifacts, settings, option) -> None:
    log_lines(BrokerProcess(tmp_path / "broker"), tmp_path, artifacts, settings, option)


def log_lines(server: ServerProcess, tmp_path: Path, artifacts, settings, option) -> None:
    """Runs the program with an appender on a server, which is killed between two lines; checks the records."""
    jars = maven_jars("log-appender", *artifacts)
    compile_command = ["javac", "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", str(tmp_path), str(PROGRAM)]
    subprocess.run(compile_command, check=True, timeout=300)
    with server as broker:
        create_topics(broker.bootstrap, {"kafka-log4j": 1})
        file = tmp_path / ("settings.properties" if option == "log4j.configuration" else "settings.xml")
        file.write_text(settings(broker.bootstrap))
        options = ["-Dfile.encoding=UTF-8", f"-D{option}=file:{file}"]
        command = ["java", "-Xmx128M", "-XX:TieredStopAtLevel=1", *options, "-cp", f"{tmp_path}:{jars}/*"]
        program = subprocess.Popen(
            [*command, "Log4jProducer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert program.stdout is not None
            while program.stdout.readline() != "logged\n":
                assert program.poll() is None, "the program ended before it had logged"
            broker.kill()
            broker.start()
            program.communicate("\n", timeout=300)
        finally:
            program.kill()
            program.wait()
        with TopicReader(broker.bootstrap, "kafka-log4j") as topic:
            topic.wait_for(101)
            texts = [LINE.fullmatch(value.decode()) for value in topic.values]
            assert {record.key for record in topic.records} == {None}
    assert [text and text[1] for text in texts] == [
        "这是一条 error 级别的日志!!",
        *(f"line {number}" for number in range(100)),
    ]
