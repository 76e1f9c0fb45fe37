"""The end of a tool that is interrupted, that writes to a closed pipe, that finds no broker, or that refuses its
arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.ports import free_port
from tests.tools.tool_host import ROOT, run_ours

Start = Callable[..., subprocess.Popen[bytes]]

TOOLS_WITH_A_BROKER = {
    "console-producer": "--topic t",
    "console-consumer": "--topic t",
    "producer-perf-test": "--topic t --num-records 10 --record-size 10 --throughput -1",
    "consumer-perf-test": "--topic t --num-records 10",
    "end-to-end-latency": "--topic t --num-records 1 --producer-acks 1 --record-size 1",
    "produce": "t value",
    "consume": "t",
    "ls": "-a",
    "describe": "t",
}
# Tools that run until they are interrupted, and output that shows that they run.
ENDLESS = {
    "console-producer": ("--topic ending", b""),
    "console-consumer": ("--topic ending --from-beginning", b"first"),
    "producer-perf-test": (
        "--topic ending-perf --num-records 1000000 --record-size 10 --throughput 100 --reporting-interval 100",
        b"records sent",
    ),
    "consumer-perf-test": ("--topic ending --num-records 1000000 --timeout 1000000 --show-detailed-stats", b"time"),
    "end-to-end-latency": ("--topic ending-latency --num-records 100000000 --producer-acks 1 --record-size 1", b"0\t"),
    "produce": ("ending", b""),
    "consume": ("ending", b"first"),
}


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts tools, and kills those that still run at the end of the test."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    started: list[subprocess.Popen[bytes]] = []

    def start(tool: str, *words: str, **streams) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "kafkapy", tool, *words]
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, **streams))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
@pytest.mark.parametrize("tool", ENDLESS)
def test_a_signal_ends_a_tool_without_a_trace(broker: BrokerProcess, tool, number, start: Start):
    run_ours("console-producer", "--bootstrap-server", broker.bootstrap, "--topic", "ending", input="first\n")
    words, said = ENDLESS[tool]
    process = start(
        tool, "--bootstrap-server", broker.bootstrap, *words.split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    if said:
        while said not in process.stdout.readline():
            assert process.poll() is None
    else:
        process.stdin.write(b"line\n")
        process.stdin.flush()
        _await_handler(process.pid, number)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in err


def _await_handler(pid: int, number: int) -> None:
    """Waits until the process has a handler for the signal, according to /proc."""
    while True:
        status = Path(f"/proc/{pid}/status").read_text()
        caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1], 16)
        # Python catches SIGINT from the beginning; a handler of SIGTERM shows that the tool has set its own.
        if caught >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.01)


def test_an_interrupted_console_consumer_prints_its_count(broker: BrokerProcess, start: Start):
    words = ("--bootstrap-server", broker.bootstrap, "--topic", "interrupted", "--from-beginning")
    run_ours("console-producer", *words[:4], input="one\ntwo\n")
    process = start("console-consumer", *words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"one\n", b"two\n"]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert err.endswith(b"Processed a total of 2 messages\n")


def test_a_closed_pipe_is_silent(broker: BrokerProcess, start: Start):
    lines = "".join(f"a line with the number {number}\n" for number in range(20_000))
    words = ("--bootstrap-server", broker.bootstrap, "--topic", "piped")
    run_ours("console-producer", *words, input=lines)
    process = start("console-consumer", *words, "--from-beginning", stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    assert process.wait(60) == 0
    assert err.startswith(b"Processed a total of ") and err.count(b"\n") == 1
    process = start("consume", "piped", *words[:2], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == (b"", 0)


def test_a_closed_pipe_is_silent_for_a_tool_without_a_broker(broker: BrokerProcess, start: Start):
    run_ours(
        *("producer-perf-test", "--bootstrap-server", broker.bootstrap, "--topic", "dumped", "--num-records", "20000"),
        *("--record-size", "10", "--throughput", "-1"),
    )
    segment = broker.data / "dumped-0" / "00000000000000000000.log"
    process = start("dump-log", "--files", str(segment), "--print-data-log", stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(60)) == (b"", 0)


@pytest.mark.parametrize("tool", TOOLS_WITH_A_BROKER)
def test_without_a_broker_there_is_one_line(tool):
    address = f"localhost:{free_port()}"
    done = run_ours(tool, "--bootstrap-server", address, *TOOLS_WITH_A_BROKER[tool].split())
    assert done.code == 1
    assert done.err == (
        f"Connection to the bootstrap server could not be established ({address}: Connection refused).\n"
    )


def test_help_has_examples_and_ends_well():
    for tool in (*TOOLS_WITH_A_BROKER, "dump-log", "storage", "server-start", "server-stop"):
        done = run_ours(tool, "--help")
        assert (done.code, done.err) == (0, "")
        assert "\nExamples\n" in done.out


def test_a_link_with_the_name_of_kafkas_script_is_that_tool(tmp_path):
    """Under the script's name `--help` exits with Kafka's status."""
    program = tmp_path / "kafka-console-consumer.sh"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from kafkapy.__main__ import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("This tool helps to read data from Kafka topics")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "4.3.0\n")
