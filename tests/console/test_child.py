"""The console as the broker's child process."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkapy.config.listener import Listener
from kafkapy.console_child import console_command
from kafkapy.errors import ConfigError
from tests.broker_process import BrokerProcess
from tests.console_process import ConsoleProcess, Visitor

PLAIN = Listener("PLAINTEXT", "PLAINTEXT", "0.0.0.0", 9092)
SECURED = Listener("SASL", "SASL_SSL", "kafka1", 9093)


def wait_until(is_true: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        time.sleep(0.05)


def console_pids(broker_pid: int) -> list[int]:
    """Returns the ids of the consoles that a broker has started."""
    children = Path(f"/proc/{broker_pid}/task").glob("*/children")
    return [int(word) for each in children for word in each.read_text().split()]


def addresses(broker: BrokerProcess) -> list[str]:
    return ConsoleProcess.ready_line.findall(broker.log())


def test_the_console_of_a_broker_shows_it_and_ends_with_it(tmp_path):
    with BrokerProcess(tmp_path, {"kafkapy.console.listener": "localhost:0"}) as broker:
        wait_until(lambda: addresses(broker), "the console has printed its address")
        origin, _, token = addresses(broker)[-1].rpartition("/")
        visitor = Visitor(origin)
        visitor.get(f"/{token}")
        assert "Brokers" in visitor.get("/c/cluster/").plain
        (console,) = console_pids(broker.pid)
        command = Path(f"/proc/{console}/cmdline").read_bytes()
        assert b"--until-end-of-input" in command
    assert not Path(f"/proc/{console}").exists()
    assert "is not started again" not in broker.log()


def test_a_console_that_is_killed_is_started_again_and_ends_when_the_broker_is_killed(tmp_path):
    with BrokerProcess(tmp_path, {"kafkapy.console.listener": "localhost:0"}) as broker:
        wait_until(lambda: addresses(broker), "the console has printed its address")
        subprocess.run(["kill", "-KILL", *map(str, console_pids(broker.pid))], check=True)
        wait_until(lambda: len(addresses(broker)) == 2, "the console was started again")
        assert "The console was ended by signal 9; it is started again in 1 s" in broker.log()
        (console,) = console_pids(broker.pid)
        broker.kill()
        wait_until(lambda: not Path(f"/proc/{console}").exists(), "the console has ended")


def test_a_console_with_wrong_arguments_is_not_started_again(tmp_path):
    properties = {"kafkapy.console.listener": "localhost:0", "kafkapy.console.arguments": "--login nobody"}
    with BrokerProcess(tmp_path, properties) as broker:
        wait_until(lambda: "is not started again" in broker.log(), "the console has ended")
        assert re.search(r"--login nobody: token, file or cluster is expected", broker.log())
        assert console_pids(broker.pid) == []


def test_the_console_connects_without_security_if_it_can():
    words = console_command("9080", "--allow-changes --name 'our cluster'", [SECURED, PLAIN])
    assert words[words.index("console") + 1 :] == [
        *("--bootstrap-server", "localhost:9092", "--listener", "9080", "--until-end-of-input"),
        *("--allow-changes", "--name", "our cluster"),
    ]


def test_the_console_connects_to_the_first_listener_with_a_clients_configuration():
    words = console_command("9080", "--command-config client.properties", [SECURED, PLAIN])
    assert "kafka1:9093" in words


def test_the_console_reads_the_metrics_listener_that_the_brokers_file_configures():
    words = console_command("9080", "--metrics http://kafka2:9404", [PLAIN], "server.properties")
    given = [words[index + 1] for index, word in enumerate(words) if word == "--metrics"]
    assert given == ["server.properties", "http://kafka2:9404"]


@pytest.mark.parametrize(
    ("arguments", "reason"), [("", "set kafkapy.console.arguments=--command-config FILE"), ("'open", "No closing quot")]
)
def test_a_console_that_could_not_connect_is_refused(arguments, reason):
    with pytest.raises(ConfigError, match=reason):
        console_command("9080", arguments, [SECURED])


def test_a_broker_refuses_a_console_that_could_not_connect(tmp_path):
    properties = {"kafkapy.console.listener": "localhost:0", "kafkapy.console.arguments": "'open"}
    with pytest.raises(AssertionError, match="No closing quotation"):
        BrokerProcess(tmp_path, properties).start()
