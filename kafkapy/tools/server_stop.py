"""The tool `kafka-server-stop`: stops the brokers of this user on this host."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from kafkapy.config.properties import read_properties
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool

PROC = Path("/proc")
_EPHEMERAL = "--ephemeral"


class BrokerProcess(NamedTuple):
    """A running broker: its process id, its working directory, and its arguments after `broker start`."""

    pid: int
    directory: Path
    words: list[str]

    def properties(self) -> dict[str, str]:
        """Returns the broker's configuration: its file, overridden by the options `--override` of its command line.

        A file that cannot be read counts as empty.
        """
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
    """Yields the brokers that run as the user `user_id` (None: the effective user of this process).

    Recognizes them by their command lines in `proc`, the process file system. An ephemeral broker belongs to the tests
    that have started it, and is left out.
    """
    user_id = os.geteuid() if user_id is None else user_id
    for entry in sorted((each for each in proc.iterdir() if each.name.isdigit()), key=lambda each: int(each.name)):
        try:
            if entry.stat().st_uid != user_id:
                continue
            words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
            directory = Path(os.readlink(entry / "cwd"))
        except OSError:
            continue  # the process has ended
        for index in range(1, len(words) - 1):
            if words[index : index + 2] == ["broker", "start"] and Path(words[index - 1]).name.startswith("kafkapy"):
                if _EPHEMERAL not in words:
                    yield BrokerProcess(int(entry.name), directory, words[index + 2 :])
                break


def _matches(broker: BrokerProcess, arguments: Arguments) -> bool:
    """Returns whether the options select a broker (KIP-979).

    --node-id selects by the broker's node.id. Without it, --process-role selects the brokers whose process.roles is the
    same text, so that "broker" does not select "broker,controller". Without both every broker is selected.
    """
    node_id, role = arguments["node-id"], arguments["process-role"]
    if node_id is not None:
        properties = broker.properties()
        return properties.get("node.id", properties.get("broker.id")) == str(node_id)
    return role is None or broker.properties().get("process.roles") == role


def stop(arguments: Arguments, brokers: Iterator[BrokerProcess], kill: Callable[[int, int], None]) -> int:
    """Sends a signal to the brokers in `brokers` that the arguments select; returns 0, the exit code.

    $SIGNAL names the signal; the default is TERM. `kill(process_id, signal_number)` sends a signal. Raises ToolError if
    no broker is selected, or if the name of the signal is unknown.
    """
    name = os.environ.get("SIGNAL", "TERM").removeprefix("SIG")
    number = getattr(signal, f"SIG{name}", None)
    if number is None:
        raise ToolError(f"SIGNAL={name} is not a signal")
    if arguments["node-id"] is not None and arguments["process-role"] is not None:
        print("When both node-id and process-role are provided, the value for node-id will take precedence")
    found = [broker for broker in brokers if _matches(broker, arguments)]
    if not found:
        raise ToolError("No kafka server to stop")
    for broker in found:
        try:
            kill(broker.pid, number)
        except ProcessLookupError:
            continue  # the broker has ended in the meantime
    return 0


def run(arguments: Arguments) -> int:
    """Stops the brokers that the arguments select; returns 0, the exit code."""
    return stop(arguments, find_brokers(), os.kill)


TOOL = Tool(
    name="server-stop",
    description="Stops the brokers of this user on this host by SIGTERM, or by the signal that $SIGNAL names.",
    run=run,
    options=(
        Option(
            "process-role",
            "Stop only the nodes with this role and no other. --node-id takes precedence.",
            "role",
            choices=("broker", "controller"),
        ),
        Option("node-id", "Stop only the broker with this node.id.", "id", INTEGER),
    ),
    examples=(
        Example("All brokers", ""),
        Example("One broker", "--node-id 2"),
        Example("All controllers", "--process-role controller"),
    ),
    needs_arguments=False,
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
