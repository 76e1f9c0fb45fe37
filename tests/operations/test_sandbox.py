"""`kafkapy sandbox`: a cluster on this machine, and the commands that make its nodes fail."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import Producer
from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "kafkapy", "sandbox"]
ENDS_SOON_S = 20.0


class SandboxProcess(ServerProcess):
    """A sandbox of one node, in the foreground of its own process."""

    ready_line = re.compile(r"^kafkapy sandbox ready: bootstrap servers (\S+), data in ", re.MULTILINE)

    def __init__(self, directory: Path, *words: str) -> None:
        super().__init__(directory, 0)
        self.data = directory / "sandbox"
        self.words = words

    def command(self) -> list[str]:
        return [*PROGRAM, "--directory", str(self.data), *self.words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(self.data, *words)

    @property
    def bootstrap(self) -> str:
        return self.ready_line.findall(self.log())[-1]

    def node_pid(self) -> int | None:
        """Returns the process id of node 1, None if it does not run."""
        cells = self.run("status").stdout.splitlines()[1].split()
        return next((int(cell) for cell in cells[2:] if cell.isdigit()), None)

    def _working_directory(self) -> Path:
        return ROOT


def run(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *words, "--directory", str(data)]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, cwd=ROOT)


def send_one(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("tried", b"value").result(30)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path, "--nodes", "1", "--port", "0") as process:
        yield process


def test_a_node_fails_and_returns_by_commands(sandbox: SandboxProcess):
    send_one(sandbox.bootstrap)
    pid = sandbox.node_pid()
    assert pid is not None
    assert sandbox.run("kill", "1").stdout == "node 1 killed\n"
    assert not exists(pid)
    assert "ended (SIGKILL)" in sandbox.run("status").stdout
    refused = sandbox.run("pause", "1")
    assert (refused.returncode, refused.stderr) == (1, "node 1 does not run: ended (SIGKILL)\n")
    assert sandbox.run("restart", "1").stdout == "node 1 restarted\n"
    send_one(sandbox.bootstrap)
    assert sandbox.run("pause", "1").stdout == "node 1 paused\n"
    pid = sandbox.node_pid()
    assert "State:\tT" in Path(f"/proc/{pid}/status").read_text()
    assert sandbox.run("resume", "1").stdout == "node 1 resumed\n"
    send_one(sandbox.bootstrap)
    assert sandbox.run("stop", "1").stdout == "node 1 stopped\n"
    assert "ended (0)" in sandbox.run("status").stdout
    assert sandbox.is_running


def test_a_client_that_sends_no_command_does_not_end_the_sandbox(sandbox: SandboxProcess):
    path = json.loads((sandbox.data / "sandbox.json").read_text())["running"]["socket"]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    assert sandbox.run("status").returncode == 0
    assert sandbox.is_running


def test_a_paused_node_is_restarted(sandbox: SandboxProcess):
    sandbox.run("pause", "1")
    assert sandbox.run("restart", "1").stdout == "node 1 restarted\n"
    send_one(sandbox.bootstrap)


def test_a_node_that_ends_by_itself_is_reported(sandbox: SandboxProcess):
    pid = sandbox.node_pid()
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + ENDS_SOON_S
    while "kafkapy sandbox: node 1 ended (0): " not in sandbox.log() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sandbox.log().count("kafkapy sandbox: node 1 ended (0): ") == 1
    assert sandbox.run("restart", "1").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_all_nodes_cleanly(sandbox: SandboxProcess, number: signal.Signals):
    pid = sandbox.node_pid()
    assert pid is not None
    assert sandbox.process is not None
    sandbox.process.send_signal(number)
    assert sandbox.process.wait(ENDS_SOON_S) == 0
    assert not exists(pid)
    assert (sandbox.data / "node-1" / "data" / ".kafka_cleanshutdown").exists()
    refused = sandbox.run("status")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"no sandbox runs in {sandbox.data}")


def test_stop_without_a_number_ends_the_sandbox_and_the_data_stays(sandbox: SandboxProcess):
    send_one(sandbox.bootstrap)
    address = sandbox.bootstrap
    assert sandbox.run("stop").stdout == "the sandbox stops\n"
    assert sandbox.process is not None
    assert sandbox.process.wait(ENDS_SOON_S) == 0
    sandbox.words = ()
    sandbox.start()
    assert sandbox.bootstrap == address
    assert (sandbox.data / "node-1" / "data" / "tried-0").is_dir()


def test_other_nodes_than_those_with_data_need_fresh(sandbox: SandboxProcess):
    send_one(sandbox.bootstrap)
    sandbox.stop()
    refused = sandbox.run("--nodes", "2")
    assert (refused.returncode, refused.stderr) == (1, f"{sandbox.data} has the data of 1 node; --fresh removes it\n")
    other = sandbox.data / "kept.txt"
    other.write_text("not ours")
    sandbox.words = ("--fresh", "--nodes", "1", "--port", "0")
    sandbox.start()
    assert not (sandbox.data / "node-1" / "data" / "tried-0").exists()
    assert other.exists()


def test_the_nodes_end_with_a_sandbox_that_is_killed(sandbox: SandboxProcess):
    pid = sandbox.node_pid()
    assert pid is not None
    sandbox.kill()
    deadline = time.monotonic() + ENDS_SOON_S
    while exists(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not exists(pid)
    assert sandbox.run("status").stderr.startswith("no sandbox runs in ")
    sandbox.words = ()
    sandbox.start()


def test_a_second_sandbox_in_the_directory_is_refused(sandbox: SandboxProcess):
    refused = sandbox.run("--nodes", "1")
    assert refused.returncode == 1
    assert refused.stderr == f"a sandbox runs in {sandbox.data}; `kafkapy sandbox stop` ends it\n"
    assert sandbox.run("status").returncode == 0


def test_a_node_that_cannot_start_is_named(tmp_path: Path):
    done = run(tmp_path / "sandbox", "--nodes", "1", "--port", "0", "--property", "authorizer.class.name=x.Y")
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.match(r"node 1 ended \(1\): .*authorizer\.class\.name=x\.Y", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("frob",), "unknown command 'frob'"),
        (("kill",), "`kill` needs the number of a node"),
        (("kill", "one"), "'one' is not the number of a node"),
        (("kill", "1"), "no sandbox runs in "),
        (("status", "--nodes", "3"), "--nodes is accepted only when a sandbox is started"),
        (("--nodes", "0"), "a cluster has at least one node"),
        (("--controllers", "1"), "--controllers and --brokers are given together"),
    ],
)
def test_wrong_words_are_refused(tmp_path: Path, words, error):
    done = run(tmp_path, *words)
    assert done.returncode == 1
    assert done.stderr.startswith(error)
