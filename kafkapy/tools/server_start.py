"""The tool `kafka-server-start`: starts a broker in the foreground, or with `-daemon` in the background."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import program_name, run_tool

OUTPUT_NAME = "kafkaServer.out"
# The broker prints this text to standard output when it serves.
READY_TEXT = "Kafka Server started"
# Most failing starts fail within this time. A start that recovers much data takes longer; its end is not awaited.
_WATCHED_S = 5.0
_PAUSE_S = 0.05


def program_command() -> tuple[list[str], dict[str, str]]:
    """Returns the command that starts this program in another process, and the environment for it."""
    if getattr(sys, "frozen", False):
        return [sys.executable], dict(os.environ)
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return [sys.executable, "-m", "kafkapy"], {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def broker_words(arguments: Arguments) -> list[str]:
    """Returns the arguments with which `kafkapy` starts the same broker as a command line of kafka-server-start.

    Raises UsageError for an invalid command line.
    """
    if len(arguments.positionals) != 1:
        raise UsageError(f"USAGE: {program_name(TOOL)} [-daemon] server.properties [--override property=value]*")
    words = ["broker", "start", "--config", arguments.positionals[0]]
    for override in arguments.values("override"):
        words += ["--override", override]
    return words


def log_directory() -> Path:
    """Returns the directory for a daemon's output: $LOG_DIR or, if this is not set, a directory in $XDG_STATE_HOME or
    ~/.local/state."""
    if os.environ.get("LOG_DIR"):
        return Path(os.environ["LOG_DIR"])
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kafkapy" / "logs"


def start_daemon(command: Sequence[str], environment: dict[str, str], directory: Path) -> None:
    """Starts the broker in a session of its own, and returns when it serves, or after five seconds.

    The broker's output goes to a file in `directory`. Raises ToolError with the last line of that output if the broker
    ends within this time.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / OUTPUT_NAME
    with path.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    deadline = time.monotonic() + _WATCHED_S
    while time.monotonic() < deadline:
        text = path.read_text(errors="replace")
        if process.poll() is not None:
            last = (text.strip().splitlines() or ["it printed nothing"])[-1]
            raise ToolError(f"The broker ended with {process.returncode}: {last} (its output is in {path})")
        if READY_TEXT in text:
            break
        time.sleep(_PAUSE_S)
    process.returncode = 0  # without a return code the interpreter would warn that the process still runs


def run(arguments: Arguments) -> None:
    """Replaces this process by the broker, or with `-daemon` starts the broker in the background."""
    words = broker_words(arguments)
    command, environment = program_command()
    if arguments["daemon"]:
        start_daemon([*command, *words], environment, log_directory())
    else:
        sys.stdout.flush()
        os.execvpe(command[0], [*command, *words], environment)


TOOL = Tool(
    name="server-start",
    description="Starts a broker with a configuration file: [-daemon] server.properties [--override property=value]*",
    run=run,
    options=(
        Option("daemon", "Start the broker in the background, with its output in kafkaServer.out in $LOG_DIR."),
        Option(
            "override",
            "A configuration key that takes precedence over the file; may be repeated.",
            "property=value",
            completes="broker-key",
        ),
    ),
    completes="file",
    examples=(
        Example("In the foreground, until Ctrl-C", "server.properties"),
        Example(
            "In the background, with one key overridden", "-daemon server.properties --override log.retention.hours=24"
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
