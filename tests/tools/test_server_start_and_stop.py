"""The tools server-start, in the foreground and with -daemon, and server-stop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkapy.readable import is_readable
from kafkapy.tools.option import ToolError
from kafkapy.tools.option_parser import OptionParser
from kafkapy.tools.server_stop import TOOL, find_brokers, stop
from tests.ports import free_port
from tests.tools.tool_host import run_ours

NODE_ID = 4_000_000 + os.getpid() % 1_000_000


def config_file(directory: Path) -> Path:
    config = directory / "server.properties"
    config.write_text(
        f"process.roles=broker,controller\nnode.id={NODE_ID}\nlisteners=PLAINTEXT://localhost:{free_port()}\n"
        f"log.dirs={directory}/data\n"
    )
    return config


def test_a_daemon_starts_and_is_stopped_by_its_node_id(tmp_path):
    config = config_file(tmp_path)
    started = run_ours(
        "server-start", "-daemon", str(config), "--override", "log.retention.hours=24", LOG_DIR=str(tmp_path / "logs")
    )
    assert (started.code, started.out, started.err) == (0, "", "")
    assert "Kafka Server started" in (tmp_path / "logs" / "kafkaServer.out").read_text()
    (broker,) = [each for each in find_brokers() if str(config) in each.words]
    assert broker.properties()["node.id"] == str(NODE_ID)
    assert broker.properties()["log.retention.hours"] == "24"
    stopped = run_ours("server-stop", "--node-id", str(NODE_ID))
    assert (stopped.code, stopped.err) == (0, "")
    descriptor = os.pidfd_open(broker.pid) if Path(f"/proc/{broker.pid}").exists() else None
    if descriptor is not None:
        assert is_readable(descriptor, 60)
        os.close(descriptor)
    again = run_ours("server-stop", "--node-id", str(NODE_ID))
    assert (again.code, again.err) == (1, "No kafka server to stop\n")


def test_a_daemon_that_fails_says_why(tmp_path):
    config = config_file(tmp_path)
    done = run_ours(
        "server-start", "-daemon", str(config), "--override", "log.segment.bytes=many", LOG_DIR=str(tmp_path)
    )
    assert done.code == 1
    assert "log.segment.bytes" in done.err and done.err.count("\n") == 1


def test_without_a_file_the_usage_is_printed():
    done = run_ours("server-start", "-daemon")
    assert done.code == 1
    assert done.err.startswith("USAGE: kafkapy server-start [-daemon] server.properties [--override property=value]*\n")


def test_the_brokers_of_this_user_are_found(tmp_path, capsys):
    """A simulated /proc has brokers of the user and other processes."""
    for pid, words in {
        11: ["/usr/bin/python", "-m", "kafkapy", "broker", "start", "--config", "a.properties"],
        12: ["/opt/kafkapy/kafkapy", "broker", "start", "--override", "node.id=7"],
        13: ["vim", "broker", "start"],
        14: ["/usr/bin/python", "-m", "kafkapy", "topics", "--list"],
        15: ["java", "kafka.Kafka", "server.properties"],
        16: ["/usr/bin/python", "-m", "kafkapy", "broker", "start", "--ephemeral"],
    }.items():
        process = tmp_path / str(pid)
        process.mkdir()
        (process / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
        (process / "cwd").symlink_to(tmp_path)
    (tmp_path / "a.properties").write_text("node.id=3\nprocess.roles=controller\n")
    (tmp_path / "self").mkdir()
    brokers = list(find_brokers(tmp_path, os.geteuid()))
    assert [(each.pid, each.properties().get("node.id")) for each in brokers] == [(11, "3"), (12, "7")]
    assert list(find_brokers(tmp_path, os.geteuid() + 1)) == []

    def killed_by(text: str) -> list[int]:
        killed: list[int] = []
        stop(OptionParser(TOOL.all_options).parse(text.split()), iter(brokers), lambda pid, number: killed.append(pid))
        return killed

    assert killed_by("") == [11, 12]
    assert killed_by("--node-id=7") == [12]
    assert killed_by("--process-role=controller") == [11]
    assert killed_by("--process-role=controller --node-id=7") == [12]
    assert "node-id will take precedence" in capsys.readouterr().out
    for selection in ("--node-id 9", "--process-role broker"):
        with pytest.raises(ToolError, match="No kafka server to stop"):
            killed_by(selection)
