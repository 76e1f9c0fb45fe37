"""The successor of the JMX tool on a broker's metrics page: the beans that Kafka's documentation names have values."""

from __future__ import annotations

import pytest

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.ports import free_port
from tests.tools.tool_host import run_here

TOPIC = "watched"
BEANS = (
    "kafka.cluster:type=Partition,name=UnderReplicated,topic=watched,partition=0:Value=0",
    "kafka.controller:type=KafkaController,name=ActiveControllerCount:Value=1",
    "kafka.controller:type=KafkaController,name=OfflinePartitionsCount:Value=0",
    "kafka.log:type=Log,name=LogEndOffset,topic=watched,partition=0:Value=3",
    "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce:99thPercentile=",
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent:Value=",
    "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec:Count=",
    "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=watched:Count=3",
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,delayedOperation=Fetch:Value=",
    "kafka.server:type=KafkaServer,name=BrokerState:Value=3",
    "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec:Count=0",
    "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions:Value=0",
    "kafka.server:type=socket-server-metrics,listener=PLAINTEXT,networkProcessor=0:connection-count=",
)


def test_the_beans_of_the_documents_have_values(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    with BrokerProcess(tmp_path, {"kafkapy.metrics.listener": f"localhost:{port}"}) as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send_many(TOPIC, ["a", "b", "c"])
        words = [word for bean in BEANS for word in ("--object-name", bean.rpartition(":")[0])]
        address = ("--jmx-url", f"service:jmx:rmi:///jndi/rmi://localhost:{port}/jmxrmi")
        done = run_here(capsys)("jmx", *address, "--one-time", "--report-format", "properties", *words)
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert [bean for bean in BEANS if not any(line.startswith(bean) for line in lines)] == []
