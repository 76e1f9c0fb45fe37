"""The end of a broker by SIGTERM or SIGINT (idle, under load, during the start), and a start whose port is in use."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.storage.log_directory import CLEAN_SHUTDOWN_FILE
from tests.api_client import ask
from tests.broker_process import BrokerProcess
from tests.crash.kill_under_load import Load, check, create_topic, read_all
from tests.crash.refusals import assert_refused, refused

TOPIC = "load"
ANSWERS_BEFORE_THE_STOP = 20


def marker(data: Path) -> int:
    """Returns the broker epoch in the clean-shutdown marker."""
    epoch = json.loads((data / CLEAN_SHUTDOWN_FILE).read_text())["brokerEpoch"]
    assert isinstance(epoch, int)
    return epoch


def end(broker: BrokerProcess, number: signal.Signals) -> int:
    assert broker.process is not None
    broker.process.send_signal(number)
    return broker.process.wait(broker.stop_timeout_s)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_broker_stops_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    assert create_topic(broker.bootstrap, TOPIC)
    began = time.monotonic()
    assert end(broker, number) == 0
    print(f"{number.name}: stopped after {time.monotonic() - began:.3f} s")
    first = marker(broker.data)
    with broker:
        assert "ecover" not in broker.log(), "after a clean stop there is nothing to recover"
        assert not (broker.data / CLEAN_SHUTDOWN_FILE).exists()
    assert marker(broker.data) > first


def test_sigterm_under_load(tmp_path: Path) -> None:
    """Each producer retries through stops and starts: no record is lost or duplicated."""
    broker = BrokerProcess(tmp_path).start()
    assert create_topic(broker.bootstrap, TOPIC)
    loads = [Load(broker.bootstrap, TOPIC, f"producer-{codec}", codec) for codec in ("none", "zstd")]
    for load in loads:
        load.start()
    for _ in range(3):
        wait_for_progress(loads)
        assert broker.stop() == 0
        marker(broker.data)
        broker.start()
    wait_for_progress(loads)
    for load in loads:
        load.stopping.set()
    for load in loads:
        load.join(60)
    assert "ecover" not in broker.log(), "each stop was a clean one"
    found = read_all(broker.bootstrap, TOPIC)
    for load in loads:
        check(load, found)
    assert broker.stop() == 0


def test_a_broker_that_stops_is_named_to_the_last(tmp_path: Path) -> None:
    """If a metadata response names no broker, a client such as librdkafka may forget its bootstrap address."""
    broker = BrokerProcess(tmp_path).start()
    assert create_topic(broker.bootstrap, TOPIC)
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)])
    answers = []
    assert broker.process is not None
    with socket.create_connection(("localhost", broker.port)) as connection, suppress(OSError):
        while True:  # until the broker closes the connection
            answers.append(ask(connection, ApiKey.METADATA, 12, request, MetadataResponse))
            if len(answers) == ANSWERS_BEFORE_THE_STOP:
                broker.process.send_signal(signal.SIGTERM)
    assert broker.process.wait(broker.stop_timeout_s) == 0
    assert len(answers) >= ANSWERS_BEFORE_THE_STOP
    assert all([each.node_id for each in answer.brokers] == [1] for answer in answers)


def wait_for_progress(loads: list[Load]) -> None:
    goals = [(load, len(load.acknowledged) + 500) for load in loads]
    deadline = time.monotonic() + 30
    while any(len(load.acknowledged) < goal for load, goal in goals):
        assert time.monotonic() < deadline, f"the producers do not get on: {[load.errors for load in loads]}"
        time.sleep(0.01)


def test_two_signals_are_one(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    assert broker.process is not None
    broker.process.send_signal(signal.SIGTERM)
    broker.process.send_signal(signal.SIGINT)
    assert broker.process.wait(broker.stop_timeout_s) == 0
    marker(broker.data)


# The conditions that can be observed from outside while a broker starts, in this order.
MOMENTS: dict[str, Callable[[BrokerProcess], bool]] = {
    "lock": lambda broker: (broker.data / ".lock").exists(),
    "meta.properties": lambda broker: (broker.data / "meta.properties").exists(),
    "metadata log": lambda broker: (broker.data / "__cluster_metadata-0").exists(),
    "registered": lambda broker: "registered broker" in broker.log(),
    "listening": lambda broker: "Awaiting socket connections" in broker.log(),
    "ready": lambda broker: broker.ready_line.search(broker.log()) is not None,
}


class StartingBroker:
    """A broker process whose start another thread waits for; `failure` is the reason why it did not become ready."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.failure = ""
        self._thread = threading.Thread(target=self._start)
        self._thread.start()

    def _start(self) -> None:
        try:
            self.broker.start()
        except AssertionError as error:
            self.failure = str(error)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self.broker.start_timeout_s
        while not condition():
            assert time.monotonic() < deadline, self.broker.log()
            time.sleep(0.0005)

    def join(self) -> None:
        self._thread.join(self.broker.start_timeout_s)
        assert not self._thread.is_alive()
        assert not self.failure or self.failure.startswith("exit "), self.failure


def test_sigterm_before_the_program_handles_signals(tmp_path: Path) -> None:
    """The signal ends the process, or the process stops cleanly if it already handles signals."""
    broker = BrokerProcess(tmp_path)
    starting = StartingBroker(broker)
    starting.wait_until(lambda: broker.process is not None)
    assert end(broker, signal.SIGTERM) in (0, -signal.SIGTERM)
    starting.join()
    assert "Traceback" not in broker.log()
    with broker:
        assert create_topic(broker.bootstrap, TOPIC)


@pytest.mark.parametrize("moment", MOMENTS)
def test_sigterm_during_start(moment: str, tmp_path: Path) -> None:
    """A broker that has begun to work on its directory completes its start and then stops cleanly."""
    broker = BrokerProcess(tmp_path)
    starting = StartingBroker(broker)
    starting.wait_until(lambda: MOMENTS[moment](broker))
    assert end(broker, signal.SIGTERM) == 0
    starting.join()
    assert "Traceback" not in broker.log()
    marker(broker.data)
    written = len(broker.log())
    with broker:
        assert "ecover" not in broker.log(written)
        assert create_topic(broker.bootstrap, TOPIC)


def test_a_start_that_finds_no_quorum_keeps_the_mark_of_the_clean_stop(tmp_path: Path, free_port: int) -> None:
    """Without the mark, the next start would recover all logs, and the controller would take the stop for a crash."""
    data, config = tmp_path / "data", tmp_path / "broker.properties"
    properties = {
        "process.roles": "broker",
        "node.id": "5",
        "controller.quorum.bootstrap.servers": f"localhost:{free_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(data),
    }
    config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    kafkapy = [sys.executable, "-m", "kafkapy"]
    format_command = ["storage", "format", "-t", "abcdefghijklmnopqrstug", "-c", config, "--no-initial-controllers"]
    subprocess.run([*kafkapy, *format_command], check=True, capture_output=True)
    (data / CLEAN_SHUTDOWN_FILE).write_text('{"version":0,"brokerEpoch":42}')
    start = [*kafkapy, "broker", "start", "--config", config]
    with subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        assert any("Connection to bootstrap server" in line for line in process.stdout)
        process.terminate()
        process.communicate()
    assert marker(data) == 42


def test_a_port_in_use(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        assert create_topic(broker.bootstrap, TOPIC)
    epoch = marker(broker.data)
    with socket.create_server(("localhost", broker.port)):
        assert_refused(
            broker, rf"localhost:{broker.port}: Address already in use\. .* --override listeners=", broker.data
        )
    assert marker(broker.data) == epoch
    with broker:
        assert "ecover" not in broker.log()
        assert not create_topic(broker.bootstrap, f"no/{TOPIC}", attempts=1)
        assert create_topic(broker.bootstrap, "another")


def test_a_port_in_use_on_a_new_directory(tmp_path: Path) -> None:
    """A broker that cannot listen formats nothing: the next start chooses the cluster id."""
    broker = BrokerProcess(tmp_path)
    with socket.create_server(("localhost", broker.port)):
        refused(broker)
    assert [path.name for path in broker.data.iterdir()] == [".lock"]
    with broker:
        assert create_topic(broker.bootstrap, TOPIC)
