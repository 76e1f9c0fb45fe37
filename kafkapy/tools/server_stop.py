"""`kafka-server-stop`: asks the brokers of this user on this host to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from kafkapy.config.properties import read_properties
from kafkapy.errors import ConfigError
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool

PROC = Path("/proc")


class BrokerProcess(NamedTuple):
    """A broker of ours that runs, and the words that it was started with."""

    pid: int
    directory: Path
    words: list[str]

    def properties(self) -> dict[str, str]:
        """Its configuration, as far as files and overrides say; {} if the file cannot be read any more."""
        values = {"--config": "", "--override": ""}
        properties: dict[str, str] = {}
        overrides: dict[str, str] = {}
        words = iter(self.words)
        for word in words:
            flag, has_value, value = word.partition("=") if word.startswith("--") else (word, "", "")
            if flag not in values:
                continue
            value = value if has_value else next(words, "")
            if flag == "--config":
                try:
                    properties = read_properties(str(self.directory / value))
                except ConfigError:
                    properties = {}
            else:
                key, _, setting = value.partition("=")
                overrides[key] = setting
        return properties | overrides


def find_brokers(proc: Path = PROC, user_id: int | None = None) -> Iterator[BrokerProcess]:
    """The brokers of a user (ours without one), by the command lines that the kernel shows."""
    user_id = os.geteuid() if user_id is None else user_id
    for entry in sorted((each for each in proc.iterdir() if each.name.isdigit()), key=lambda each: int(each.name)):
        try:
            if entry.stat().st_uid != user_id:
                continue
            words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
            directory = Path(os.readlink(entry / "cwd"))
        except OSError:
            continue  # it has ended meanwhile
        for index in range(1, len(words) - 1):
            if words[index : index + 2] == ["broker", "start"] and Path(words[index - 1]).name.startswith("kafkapy"):
                yield BrokerProcess(int(entry.name), directory, words[index + 2 :])
                break


def _matches(broker: BrokerProcess, arguments: Arguments) -> bool:
    if arguments["node-id"] is None:
        return True
    properties = broker.properties()
    return properties.get("node.id", properties.get("broker.id")) == str(arguments["node-id"])


def stop(arguments: Arguments, brokers: Iterator[BrokerProcess], kill: Callable[[int, int], None]) -> int:
    """Sends $SIGNAL (TERM) to the brokers that match.  ToolError if there is none."""
    name = os.environ.get("SIGNAL", "TERM").removeprefix("SIG")
    number = getattr(signal, f"SIG{name}", None)
    if number is None:
        raise ToolError(f"SIGNAL={name} is no signal")
    found = [broker for broker in brokers if _matches(broker, arguments)]
    if not found:
        raise ToolError("No kafka server to stop")
    for broker in found:
        try:
            kill(broker.pid, number)
        except ProcessLookupError:
            continue  # it was quicker
    return 0


def run(arguments: Arguments) -> int:
    return stop(arguments, find_brokers(), os.kill)


TOOL = Tool(
    name="server-stop",
    description="Ends the brokers of this user on this host: each gets SIGTERM, or the signal named in $SIGNAL.",
    run=run,
    options=(
        Option(
            "process-role",
            "Taken and without a choice to make: every broker here has both roles.",
            "role",
            choices=("broker", "controller"),
        ),
        Option("node-id", "Only the broker with this node.id.", "id", INTEGER),
    ),
    examples=(
        Example("All of them", ""),
        Example("One of several", "--node-id 2"),
    ),
    needs_arguments=False,
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
