"""Runs Apache Kafka's tools and ours with the same words, and returns their output and exit codes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import pytest

from kafkapy.__main__ import TOOLS

SOURCE = Path(__file__).with_name("ToolHost.java")
ROOT = Path(__file__).parents[2]
CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
    "verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
    "share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "storage": "kafka.tools.StorageTool",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "end-to-end-latency": "org.apache.kafka.tools.EndToEndLatency",
}


class Done(NamedTuple):
    """The exit code and the output of a tool."""

    code: int
    out: str
    err: str


class ToolHost:
    """A Java process that runs tools of a release of Apache Kafka, one at a time. Context manager."""

    def __init__(self, kafka: Path, classes: Path) -> None:
        """Compiles the host into the empty directory `classes` and starts it."""
        command = ["javac", "-nowarn", "-proc:none", "-cp", f"{kafka}/libs/*", "-d", str(classes), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, timeout=90)
        options = ["-Xmx384M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true"]
        self._process = subprocess.Popen(
            ["java", *options, "-cp", f"{classes}:{kafka}/libs/*", "ToolHost"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, tool: str, *words: str, input: str = "") -> Done:
        """Runs Apache Kafka's tool of that name."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        encoded = base64.b64encode(input.encode()).decode()
        request = {"class": CLASSES[tool], "arguments": words, "input": encoded}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        out, err = (base64.b64decode(reply[name]).decode("utf-8", "replace") for name in ("out", "err"))
        return Done(reply["code"], out, err)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()


def run_here(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Returns a function that runs our tool in this process, which costs much less than a process of its own."""

    def run(tool: str, *words: str) -> Done:
        module = import_module(TOOLS[tool][0])
        capsys.readouterr()
        return Done(module.main(list(words)), *capsys.readouterr())

    return run


def run_ours(tool: str, *words: str, input: str = "", **environment: str) -> Done:
    """Runs our tool of that name in a process of its own; `environment` is added to the test's."""
    done = subprocess.run(
        [sys.executable, "-m", "kafkapy", tool, *words],
        input=input.encode(),
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        timeout=90,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
