"""The plug-in for pytest in a separate project, and the programs of docs/testing.md."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT, of_section

PAGE = "docs/testing.md"
# Each worker of xdist writes the port of its broker, to which its tests are bound.
PROJECT = """
import os
from pathlib import Path

import pytest

from kafkapy.client import Consumer, Producer


@pytest.fixture(scope="session")
def kafka_broker_settings():
    return {"num.partitions": 2, "auto.create.topics.enable": False}


@pytest.fixture(autouse=True)
def note(kafka_broker):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "only")
    Path(f"{worker}.note").write_text(f"{kafka_broker.port} {kafka_broker._process.pid}")


@pytest.mark.parametrize("number", range(4))
def test_a_topic_of_its_own(kafka_bootstrap_servers, kafka_topic, number):
    assert kafka_topic.startswith("test_a_topic_of_its_own-")
    with Producer(bootstrap_servers=kafka_bootstrap_servers) as producer:
        producer.send(kafka_topic, str(number), partition=1).result()
    settings = {"group_id": kafka_topic, "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=kafka_bootstrap_servers, **settings) as consumer:
        consumer.subscribe([kafka_topic])
        assert [(record.partition, record.value) for record in consumer.poll(20)] == [(1, b"%d" % number)]
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Returns the environment of a project in whose Python kafkapy is installed with its entry points."""
    installed, temporary = tmp_path / "installed", tmp_path / "temporary"
    metadata = installed / "kafkapy-0.dist-info"
    metadata.mkdir(parents=True)
    temporary.mkdir()
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kafkapy\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text(
        "[pytest11]\n" + "".join(f"{name} = {module}\n" for name, module in points.items())
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "KAFKAPY_"))}
    return {**inherited, "PYTHONPATH": f"{installed}:{ROOT}", "TMPDIR": str(temporary)}


def run_project(folder: Path, environment: dict[str, str], text: str, *options: str) -> str:
    """Runs pytest in a new project with one test file; returns what it prints."""
    folder.mkdir()
    (folder / "test_project.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=60", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def notes(folder: Path) -> list[list[int]]:
    """Returns the port and the process of each broker that the tests of a project have used."""
    return [[int(word) for word in path.read_text().split()] for path in folder.glob("*.note")]


def is_left(environment: dict[str, str]) -> list[str]:
    """Returns the entries of brokers in the temporary directory."""
    return [path.name for path in Path(environment["TMPDIR"]).glob("kafkapy-*")]


@pytest.mark.parametrize(("options", "brokers"), [((), 1), (("-n", "2"), 2)], ids=["one process", "xdist"])
def test_a_separate_project_gets_a_broker(options, brokers, tmp_path, environment):
    folder = tmp_path / "project"
    assert "4 passed" in run_project(folder, environment, PROJECT, *options)
    found = notes(folder)
    assert len({port for port, _ in found}) == len(found) == brokers
    assert not [pid for _, pid in found if Path(f"/proc/{pid}").exists()]
    assert is_left(environment) == []


def test_the_page_shows_a_test_and_a_program(tmp_path, environment):
    (project,) = of_section(PAGE, "With pytest")
    (program,) = of_section(PAGE, "In a program")
    test = f'{program.text}\nassert capsys.readouterr().out == "0\\n"\n'
    text = f"{project.text}\ndef test_the_program(capsys):\n{textwrap.indent(test, '    ')}"
    assert "2 passed" in run_project(tmp_path / "project", environment, text)


def test_the_page_shows_the_command_for_other_languages(tmp_path, environment):
    (command,) = of_section(PAGE, "In other languages")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "kafkapy").write_text(f'#!/bin/sh\nexec {sys.executable} -m kafkapy "$@"\n')
    (programs / "kafkapy").chmod(0o755)
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", command.text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert (tmp_path / "port").read_text().strip().isdigit()
    assert is_left(environment) == []
