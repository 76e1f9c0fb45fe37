"""The doctor's command line: exit codes, formats, and that it changes nothing."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from kafkapy.tools.doctor import main
from tests.directory_content import assert_unchanged, directory_content


@pytest.fixture
def config(tmp_path: Path, free_port: int) -> Path:
    data = tmp_path / "data"
    (data / "topic-0").mkdir(parents=True)
    (data / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
    path = tmp_path / "server.properties"
    path.write_text(f"node.id=1\nlisteners=PLAINTEXT://localhost:{free_port}\nlog.dirs={data}\n")
    return path


def test_findings_are_lines_and_nothing_is_changed(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    before = directory_content(tmp_path)
    assert main(["--config", str(config)]) == 0
    assert_unchanged(before, directory_content(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert "note     configuration: only clients on this machine can connect: listeners has loopback addresses" in lines
    assert "note     data: the last stop was not clean: the next start checks 1 partitions" in lines
    assert {line.split()[0] for line in lines if not line.startswith(" ")} <= {"good", "note", "warning"}


def test_levels_are_coloured_on_a_terminal_only(config: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kafkapy.tools.doctor.has_colours", lambda: True)
    assert main(["--config", str(config), "--override", "log.segment.size=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("\x1b[33mwarning \x1b[0m configuration: ") for line in lines)
    assert any(line.startswith("\x1b[32mgood    \x1b[0m ") for line in lines)
    assert any(line.startswith("note     ") for line in lines)


def test_json_and_quiet_leave_out_what_is_good(config: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["--config", str(config), "--json", "--quiet", "--override", "log.segment.size=1"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert {finding["level"] for finding in findings} == {"note", "warning"}
    assert any("log.segment.size is unknown" in finding["text"] for finding in findings)


def test_a_refused_configuration_is_a_problem(config: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["--config", str(config), "--override", "log.segment.bytes=1"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("problem  configuration: Invalid value 1 for configuration log.segment.bytes")
    assert main(["--config", str(config.parent / "missing")]) == 1
    assert "No such file" in capsys.readouterr().out


def test_a_problem_sets_the_exit_code(config: Path, capsys: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert main(["--config", str(config), f"--override=listeners=PLAINTEXT://localhost:{port}"]) == 1
    assert "another program uses the port" in capsys.readouterr().out


def test_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    assert "Exit codes: 0 " in capsys.readouterr().out


def test_wrong_arguments_are_refused(config: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["--config", str(config), "--override", "nonsense"]) == 1
    assert "--override takes key=value" in capsys.readouterr().err
