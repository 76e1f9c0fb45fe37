"""The types that a program using the installed package sees."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

ROOT = Path(__file__).parents[3]
PROGRAM = """
from kafkapy.client import ApiError, Consumer, Producer
from kafkapy.client.admin import Admin, NewTopic

with Producer(bootstrap_servers="localhost:9092") as producer:
    offset: int = producer.send("topic", "value").result(10).offset
with Consumer({"group.id": "readers"}, bootstrap_servers="localhost:9092") as consumer:
    consumer.subscribe(["topic"])
    for record in consumer.poll(1.0):
        topic: str = record.topic
    rows: int = consumer.poll_arrow(1.0).row_count
try:
    Admin(bootstrap_servers="localhost:9092").create_topics([NewTopic("topic")]).check()
except ApiError as error:
    message: str = error.message
wrong: str = consumer.position(("topic", 0))
"""


@pytest.mark.timeout(300)
def test_a_strictly_typed_program_sees_the_types_of_the_package(tmp_path):
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (site_packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site_packages / "kafkapy.pth").write_text(f"{ROOT}\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    options = ["--strict", "--python-executable", tmp_path / "venv/bin/python", "--cache-dir", tmp_path / "cache"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert [line.partition(" [")[0] for line in lines if "error:" in line] == [
        'program.py:16: error: Incompatible types in assignment (expression has type "int", variable has type "str") ',
        'program.py:16: error: Argument 1 to "position" of "Consumer" has incompatible type "tuple[str, int]"; '
        'expected "TopicPartition" ',
    ], done.stdout + done.stderr


def test_the_package_data_has_the_marker_of_typed_packages(monkeypatch):
    monkeypatch.chdir(ROOT)
    distribution = Distribution()
    distribution.packages = ["kafkapy"]
    distribution.parse_config_files()
    command = build_py(distribution)
    command.ensure_finalized()
    command.manifest_files = {}  # without the files that MANIFEST.in adds
    assert str(Path("kafkapy", "py.typed")) in command.find_data_files("kafkapy", "kafkapy")
