"""The page about ZooKeeper: its `server.properties` starts, and its commands print what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT, of_section
from tests.ports import free_port
from tests.server_process import ServerProcess
from tests.tools.tool_host import run_ours

PAGE = "docs/zookeeper.md"
DIFF = re.compile(r"```diff\n(.*?)```", re.DOTALL)
PROMPT = re.compile(r"\[zk: \S+ \d+\] (.*)")
# What differs between two starts of a broker.
VARYING = (
    (re.compile(r'"timestamp":"\d+"'), '"timestamp":"TIME"'),
    (re.compile(r'"controller_epoch":\d+'), '"controller_epoch":EPOCH'),
)


class PageBroker(ServerProcess):
    """A broker with the `server.properties` that the page shows as a difference, at other ports and in another folder.

    With `removed` it has the lines that the difference removes, not those that it adds.
    """

    ready_line = re.compile(r"Awaiting ZooKeeper clients")

    def __init__(self, directory: Path, *, removed: bool = False) -> None:
        super().__init__(directory, None)
        found = DIFF.search((ROOT / PAGE).read_text())
        assert found is not None
        marks = " -" if removed else " +"
        text = "".join(line[1:] + "\n" for line in found[1].splitlines() if line[0] in marks)
        self.zookeeper = f"localhost:{free_port()}"
        for before, after in self.places:
            assert before in text or removed, before
            text = text.replace(before, after)
        self.config = directory / "server.properties"
        self.config.write_text(text)

    @property
    def places(self) -> list[tuple[str, str]]:
        return [
            ("localhost:2181", self.zookeeper),
            ("localhost:9092", self.bootstrap),
            ("/tmp/kafka-logs", str(self.directory / "data")),
        ]

    def command(self) -> list[str]:
        return [sys.executable, "-m", "kafkapy", "server-start", str(self.config)]

    def local(self, text: str) -> str:
        """Returns a text of the page with this broker's addresses."""
        for before, after in [*self.places, ('"port":9092', f'"port":{self.port}')]:
            text = text.replace(before, after)
        return text


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with PageBroker(tmp_path_factory.mktemp("page")) as broker:
        yield broker


def normal(text: str) -> str:
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return text


def steps(text: str):
    """Yields (command, lines typed into it, printed lines) of a console block."""
    command, typed, printed = "", [], []
    for line in [*text.splitlines(), "$ "]:
        if line.startswith("$ "):
            if command:
                yield command, typed, printed
            command, typed, printed = line[2:], [], []
        elif match := PROMPT.fullmatch(line):
            typed.append(match[1])
        else:
            printed.append(line)


@pytest.mark.parametrize("block", of_section(PAGE, "A walk through the znodes"), ids=["topics", "offsets"])
def test_the_commands_print_what_the_page_shows(broker, block):
    """A prompt is not printed to a pipe, and the shell begins with lines about its connection."""
    for command, typed, printed in steps(broker.local(block.text)):
        program, *words = command.split()
        assert program == "kafkapy"
        if typed:
            shell = subprocess.run(
                [sys.executable, "-m", "kafkapy", *words],
                input="\n".join(typed) + "\n",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=True,
            )
            found = re.sub(r"(?s)^.*?zxid: -1\n", "", shell.stdout)
            found = re.sub(r"(?s)\nWATCHER::\n.*$", "", found)
        else:
            found = run_ours(*words).out
        assert normal(found).splitlines() == [normal(line) for line in printed], command


def test_the_file_without_the_edit_is_refused_with_the_new_key(tmp_path):
    refused = PageBroker(tmp_path, removed=True)
    done = subprocess.run(refused.command(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "set zookeeper.listener=localhost:2181" in done.stdout + done.stderr
