"""The tool `kafkapy sandbox`: runs a cluster on this machine, and makes its nodes fail."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from kafkapy.decimal_text import is_number
from kafkapy.sandbox.layout import Layout, make_layout, read_layout, roles_of, write_layout
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError, parse_key_values
from kafkapy.tools.server_start import program_command
from kafkapy.tools.tool import run_tool, stops_by

COMMANDS = ("status", "kill", "stop", "pause", "resume", "restart")
FIRST_PORT = 9092


def default_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the default directory of the sandbox, which is below the user's data folder."""
    base = environment.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "kafkapy" / "sandbox"


def run(arguments: Arguments) -> int:
    """Runs a sandbox, or carries out a command on the sandbox that runs already; returns the exit code."""
    directory = Path(arguments["directory"] or default_directory()).resolve()
    if not arguments.positionals:
        return run_sandbox(directory, arguments)
    command, *words = arguments.positionals
    if command not in COMMANDS:
        raise UsageError(f"unknown command {command!r}; the commands are {', '.join(COMMANDS)}")
    given = [name for name in arguments.given if name != "directory"]
    if given:
        raise UsageError(f"--{given[0]} is accepted only when a sandbox is started, not with `{command}`")
    if not words and command not in ("status", "stop"):
        raise UsageError(f"`{command}` needs the number of a node, or several")
    wrong = [word for word in words if not is_number(word)]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is not the number of a node")
    return command_sandbox(directory, command, [int(word) for word in words])


def command_sandbox(directory: Path, command: str, node_ids: list[int]) -> int:
    """Carries out a command on the sandbox that runs in `directory`, and prints its result. Raises ToolError if no
    sandbox runs there, or the command fails."""
    from kafkapy.sandbox.supervisor import ask

    found = _read(directory)
    path = found[1].get("socket") if found is not None else None
    try:
        if path is None:
            raise FileNotFoundError
        lines = ask(path, command, node_ids)
    except (FileNotFoundError, ConnectionRefusedError):
        raise ToolError(f"no sandbox runs in {directory}; `kafkapy sandbox` starts one") from None
    print("\n".join(lines))
    return 0


def run_sandbox(directory: Path, arguments: Arguments) -> int:
    """Starts the nodes, prints one line when all nodes are ready, and stops them at Ctrl-C. Raises ToolError if another
    sandbox runs in `directory`, if the directory has data of other nodes, or if a node does not become ready."""
    from kafkapy.sandbox.supervisor import Supervisor, locked

    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        if arguments["fresh"]:
            _remove_data(directory)
        supervisor = Supervisor(directory, _layout(directory, arguments), *program_command())
        with stops_by(supervisor.request_stop) as signals:
            try:
                supervisor.prepare()
                supervisor.start()
                if not signals:
                    ready = (
                        f"kafkapy sandbox ready: bootstrap servers {supervisor.layout.bootstrap}, data in {directory}"
                    )
                    supervisor.serve(
                        lambda: print(ready, flush=True),
                        lambda line: print(f"kafkapy sandbox: {line}", file=sys.stderr, flush=True),
                    )
            finally:
                supervisor.stop()
    return 0


def _read(directory: Path) -> tuple[Layout, dict[str, str]] | None:
    try:
        return read_layout(directory)
    except ValueError as error:
        raise ToolError(str(error)) from None


def _layout(directory: Path, arguments: Arguments) -> Layout:
    """Returns the layout of the earlier run in the directory, or a new one if there was none, and stores it.

    Raises ToolError if the arguments ask for other nodes or ports than the earlier run had, and UsageError for numbers
    of nodes that are invalid.
    """
    try:
        roles = roles_of(arguments["nodes"], arguments["controllers"], arguments["brokers"])
    except ValueError as error:
        raise UsageError(str(error)) from None
    properties = parse_key_values(arguments.values("property"), accepts_missing=False)
    found = _read(directory)
    if found is None:
        layout = make_layout(roles, arguments["port"], properties)
    else:
        layout = found[0]._replace(properties=properties)
        are_nodes_given = any(arguments.has(name) for name in ("nodes", "controllers", "brokers"))
        if are_nodes_given and layout.shape != roles:
            raise ToolError(f"{directory} has the data of {_describe(layout)}; --fresh removes it")
        if arguments.has("port"):
            raise ToolError(f"{directory} has data of nodes with ports of their own; --fresh removes it")
    write_layout(directory, layout)
    return layout


def _describe(layout: Layout) -> str:
    controllers, nodes = len(layout.controllers), len(layout.nodes)
    if all(node.is_broker for node in layout.nodes):
        return _count(nodes, "node")
    return f"{_count(controllers, 'controller')} and {_count(nodes - controllers, 'broker')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _remove_data(directory: Path) -> None:
    """Removes the nodes' folders and `sandbox.json`, and nothing else in the directory."""
    for folder in directory.glob("node-*"):
        if folder.name.removeprefix("node-").isdigit() and folder.is_dir():
            shutil.rmtree(folder)
    (directory / "sandbox.json").unlink(missing_ok=True)


TOOL = Tool(
    name="sandbox",
    description="Runs a cluster on this machine until Ctrl-C: [status | kill NODE | stop [NODE] | pause NODE | resume "
    "NODE | restart NODE]. The commands act on the running sandbox, from another shell.",
    run=run,
    options=(
        Option("nodes", "The number of nodes, each of which is controller and broker; 3 by default.", "count", INTEGER),
        Option("controllers", "The number of controllers, with --brokers instead of --nodes.", "count", INTEGER),
        Option("brokers", "The number of brokers that are not controllers.", "count", INTEGER),
        Option(
            "port",
            "The port of the first broker; the other brokers and then the controllers have the next ports. 0: any free "
            "ports.",
            "port",
            INTEGER,
            default=FIRST_PORT,
        ),
        Option(
            "directory",
            "The directory of the sandbox; by default one below the user's data folder.",
            "directory",
            completes="directory",
        ),
        Option("fresh", "Remove the data of an earlier run first."),
        Option(
            "property",
            "A configuration key of every node; may be repeated.",
            "key=value",
            completes="broker-key",
        ),
    ),
    needs_arguments=False,
    examples=(
        Example("Three nodes, each controller and broker", "--nodes 3"),
        Example("Separate roles, with the data of an earlier run removed", "--controllers 3 --brokers 2 --fresh"),
        Example("What runs", "status"),
        Example("Kill node 2 with SIGKILL, and start it again", "kill 2 && kafkapy sandbox restart 2"),
        Example("Let node 3 hang for a while", "pause 3; sleep 20; kafkapy sandbox resume 3"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
