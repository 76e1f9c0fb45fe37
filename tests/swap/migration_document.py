"""The commands of docs/operations.md, and an environment in which they run unchanged."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.peers import ROOT, ApacheKafka

DOCUMENT = ROOT / "docs" / "operations.md"
BLOCK = re.compile(r"^( *)```sh\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SETTINGS = "<!-- set: the test has values of its own -->\n```sh\n"
# The behaviour of the scripts in Apache Kafka's download, with the same classes.
START = """#!/bin/sh
[ "$1" = -daemon ] && shift
nohup {java} "$1" >> {log} 2>&1 < /dev/null &
echo $! > {pid}
"""
STOP = """#!/bin/sh
kill -TERM "$(cat {pid})"
"""


def commands_of(section: str) -> str:
    """Returns the shell commands of a section in their order, without the commands that only set paths and
    addresses."""
    text = DOCUMENT.read_text()
    _, found, rest = text.partition(f"\n## {section}\n")
    assert found, section
    body = rest.partition("\n## ")[0]
    before, has_settings, after = body.partition(SETTINGS)
    if has_settings:
        body = before + after.partition("```\n")[2]
    return "".join(textwrap.dedent(block) for _, block in BLOCK.findall(body))


class Machine:
    """A folder with `kafka/bin`, a `kafkapy` on the path, and the variables that the document uses.

    Owns the processes that the commands start; `end` ends them.
    """

    def __init__(self, directory: Path, kafka: ApacheKafka) -> None:
        self.directory = directory
        self.kafka = kafka
        self._pid_files = [directory / "kafka.pid", directory / "kafkapy.pid"]
        scripts = directory / "kafka" / "bin"
        scripts.mkdir(parents=True)
        values = {"java": shlex.join(kafka.command()[:-1]), "log": directory / "kafka.log", "pid": self._pid_files[0]}
        self._write(scripts / "kafka-server-start.sh", START.format(**values))
        self._write(scripts / "kafka-server-stop.sh", STOP.format(**values))
        (directory / "bin").mkdir()
        program = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m kafkapy "$@"\n'
        self._write(directory / "bin" / "kafkapy", program)
        self._environment = {
            **os.environ,
            "PATH": f"{directory / 'bin'}:{os.environ['PATH']}",
            "KAFKA": str(directory / "kafka"),
            "CONFIG": str(kafka.config),
            "DATA": str(kafka.log_dirs[0]),
            "BROKER": kafka.bootstrap,
        }

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def run(self, commands: str, timeout_s: float = 120) -> str:
        """Runs the commands in one shell, which ends at the first failure. Returns their output."""
        output = self.directory / "shell.log"
        with output.open("w") as file:
            done = subprocess.run(
                ["bash", "-euxo", "pipefail"],
                input=commands,
                text=True,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self.directory,
                timeout=timeout_s,
                check=False,
            )
        assert done.returncode == 0, output.read_text()[-8000:]
        return output.read_text()

    def end(self) -> None:
        for path in self._pid_files:
            if path.exists():
                subprocess.run(["kill", "-KILL", path.read_text().strip()], check=False, capture_output=True)
