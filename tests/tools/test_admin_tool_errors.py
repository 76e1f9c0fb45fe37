"""Errors of the admin client's tools: no broker, an interrupt, a closed pipe."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.ports import free_port
from tests.tools.tool_host import ROOT, run_ours

TOOLS = {
    "topics": ["--list"],
    "configs": ["--describe", "--entity-type", "topics"],
    "consumer-groups": ["--list"],
    "get-offsets": ["--topic", "a"],
    "log-dirs": ["--describe"],
    "leader-election": ["--election-type", "preferred", "--all-topic-partitions"],
    "broker-api-versions": [],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_missing_broker_is_one_line(tool: str) -> None:
    done = run_ours(tool, "--bootstrap-server", f"localhost:{free_port()}", *TOOLS[tool])
    assert done.code == 1
    assert not done.out
    assert done.err.count("\n") == 1
    assert "could not be established" in done.err


def test_a_missing_broker_is_one_line_with_subcommands() -> None:
    address = ("--bootstrap-server", f"localhost:{free_port()}")
    for words in (("cluster", "cluster-id", *address), ("transactions", *address, "list")):
        done = run_ours(*words)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1), done


def test_an_unknown_flag_is_answered_in_two_lines() -> None:
    done = run_ours("consumer-groups", "--bootstrap-server", "localhost:1", "--foo")
    assert done.code == 1
    assert done.err == "foo is not a recognized option\nSee `kafkapy consumer-groups --help`.\n"


def test_an_interrupt_ends_a_tool_that_waits() -> None:
    """The listener accepts the connection and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        words = ["topics", "--bootstrap-server", f"127.0.0.1:{listener.getsockname()[1]}", "--list"]
        process = subprocess.Popen(
            [sys.executable, "-m", "kafkapy", *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        # The first connection only checks that the server listens; the second one is the client's.
        listener.settimeout(60)
        connections = [listener.accept()[0] for _ in range(2)]  # unreferenced sockets would be closed at once
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        for connection in connections:
            connection.close()
    assert process.returncode == 128 + signal.SIGINT
    assert (out, err) == (b"", b"")


def test_a_closed_pipe_is_silent() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "kafkapy", "topics", "--help"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=write_end,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")
