"""A tool: its declaration, and what happens around its run (help, errors, signals, a closed pipe)."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from kafkapy import __version__
from kafkapy.errors import ApiError, ConfigError, ProtocolViolation
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError

# The release of Apache Kafka whose tools these are, which `--version` names.
KAFKA_VERSION = "4.3.0"
# Set, an unexpected error shows its trace.
TRACE_VARIABLE = "KAFKAPY_TRACE"


class Grammar(Enum):
    """Which parser Apache Kafka's tool of that name uses: they differ in abbreviations, errors and usage."""

    JOPTSIMPLE = "joptsimple"
    ARGPARSE4J = "argparse4j"


class Example(NamedTuple):
    """One of the examples that `--help` ends with: what for, and the words after the tool's name."""

    purpose: str
    words: str


class Command(NamedTuple):
    """A subcommand: `kafkapy storage format`.  `required_groups` as in Tool."""

    name: str
    description: str
    options: tuple[Option, ...]
    required_groups: tuple[str, ...] = ()


HELP = Option("help", "Print usage information.")
VERSION = Option("version", "Display Kafka version.")
ARGPARSE_HELP = Option("help", "show this help message and exit", aliases=("h",))


@dataclass(frozen=True)
class Tool:
    """What a tool declares.  Immutable.

    description: the line above the usage, what the tool is for.
    run: carries out the arguments; the exit code, None is 0. It may raise UsageError, ToolError, ApiError, ConfigError,
        OSError (TimeoutError included) or KeyboardInterrupt: each becomes a line and an exit code here.
    options: `--help` and `--version` are added.
    commands: subcommands, each with options of its own (with ARGPARSE4J only).
    kafka_name: what Apache Kafka's parser calls the program in its usage, if that is not the script's name.
    error_prefix: what stands in front of an error that the tool did not foresee, as in Kafka's.
    required_groups: the groups of options of which exactly one has to be given (with ARGPARSE4J only).
    needs_arguments: without a single word the usage is printed, and the exit code is 1.
    usage_line: what is said of a wrong command line, `{}` being what is wrong, instead of the usage and that.
    not_here: flags of Apache Kafka's that this tool does not take, and why.
    """

    name: str
    description: str
    run: Callable[[Arguments], int | None]
    options: tuple[Option, ...] = ()
    examples: tuple[Example, ...] = ()
    grammar: Grammar = Grammar.JOPTSIMPLE
    commands: tuple[Command, ...] = ()
    kafka_name: str = ""
    error_prefix: str = ""
    required_groups: tuple[str, ...] = ()
    needs_arguments: bool = True
    usage_line: str = ""
    not_here: tuple[tuple[str, str], ...] = ()

    @property
    def all_options(self) -> tuple[Option, ...]:
        """With those that every tool has."""
        shared = (HELP, VERSION) if self.grammar is Grammar.JOPTSIMPLE else (ARGPARSE_HELP,)
        return (*self.options, *shared)


class Termination(KeyboardInterrupt):
    """SIGINT or SIGTERM.  The tool closes what it holds, and ends with 128 + the signal's number, as Java does."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def script_name() -> str:
    """The name of Apache Kafka's script that this program was started by (through a link), or "" if by its own."""
    name = Path(sys.argv[0]).name
    return name if name.startswith("kafka-") else ""


def program_name(tool: Tool) -> str:
    """What the user typed: `kafka-topics.sh` or `kafkapy topics`."""
    return script_name() or f"kafkapy {tool.name}"


def run_tool(tool: Tool, words: Sequence[str]) -> int:
    """Runs a tool with the words behind its name: its exit code.  Raises nothing but BrokenPipeError."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="[%(asctime)s] %(levelname)s %(message)s")
    try:
        with _signals():
            code = _carry_out(tool, words)
            sys.stdout.flush()
            return code
    except Termination as error:
        return 128 + error.number
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _carry_out(tool: Tool, words: Sequence[str]) -> int:
    from kafkapy.tools import option_help

    is_script = bool(script_name())
    try:
        if not words and tool.needs_arguments and tool.grammar is Grammar.JOPTSIMPLE:
            sys.stderr.write(option_help.help_page(tool, program_name(tool)))
            return 1
        if not words and tool.needs_arguments and not tool.commands:
            sys.stdout.write(option_help.help_page(tool, program_name(tool)))
            return 0
        refuse_zookeeper(tool, words)
        command, arguments = parse(tool, words)
        if arguments.has("help"):
            (sys.stderr if is_script else sys.stdout).write(option_help.help_page(tool, program_name(tool), command))
            return 1 if is_script and tool.grammar is Grammar.JOPTSIMPLE else 0
        if tool.grammar is Grammar.JOPTSIMPLE and arguments.has("version"):
            print(KAFKA_VERSION if is_script else f"{KAFKA_VERSION} (kafkapy {__version__})")
            return 0
        return tool.run(arguments) or 0
    except UsageError as error:
        sys.stdout.flush()
        sys.stderr.write(option_help.usage_error(tool, program_name(tool), str(error), command_of(tool, words)))
        return 1
    except ToolError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        raise
    except (ApiError, ConfigError, ProtocolViolation, OSError) as error:
        return _fail(tool.error_prefix + sentence(error), 1)
    except Exception as error:
        if os.environ.get(TRACE_VARIABLE):
            raise
        return _fail(f"{tool.error_prefix}{type(error).__name__}: {error} (for a trace, set {TRACE_VARIABLE}=1)", 1)


def _fail(message: str, exit_code: int) -> int:
    """One line after everything that the tool has said."""
    sys.stdout.flush()
    print(message, file=sys.stderr)
    return exit_code


def parse(tool: Tool, words: Sequence[str]) -> tuple[Command | None, Arguments]:
    """The subcommand, if the tool has some, and the arguments.  UsageError."""
    from kafkapy.tools.argument_parser import ArgumentParser
    from kafkapy.tools.option_parser import OptionParser

    if tool.grammar is Grammar.JOPTSIMPLE:
        return None, OptionParser(tool.all_options).parse(words)
    if not tool.commands or words[:1] in (["--help"], ["-h"]):
        return None, ArgumentParser(tool.all_options, tool.required_groups).parse(words)
    command = command_of(tool, words)
    at = _command_position(tool, words)
    if command is None:
        choices = ", ".join(f"'{each.name}'" for each in tool.commands)
        if at >= len(words) or words[at].startswith("-"):
            raise UsageError("too few arguments")
        raise UsageError(f"invalid choice: '{words[at]}' (choose from {choices})")
    parser = ArgumentParser((*tool.options, *command.options, ARGPARSE_HELP), command.required_groups)
    return command, parser.parse([*words[:at], *words[at + 1 :]], command.name)


def _command_position(tool: Tool, words: Sequence[str]) -> int:
    """Where the subcommand stands: first, or behind flags of the tool, each of which has a value."""
    flags = {flag for option in tool.options if option.argument is not None for flag in option.flags}
    at = 0
    while at < len(words) and words[at].partition("=")[0] in flags:
        at += 1 if "=" in words[at] else 2
    return at


def command_of(tool: Tool, words: Sequence[str]) -> Command | None:
    """The subcommand that the words name."""
    at = _command_position(tool, words)
    return next((each for each in tool.commands if at < len(words) and each.name == words[at]), None)


def refuse_zookeeper(tool: Tool, words: Sequence[str]) -> None:
    """ToolError for `--zookeeper`, which went away with Kafka 3.0: it names the form that works today."""
    for index, word in enumerate(words):
        flag, has_value, _ = word.partition("=")
        if flag in ("--zookeeper", "-zookeeper"):
            rest = [*words[:index], *words[index + (1 if has_value else 2) :]]
            typed = " ".join([program_name(tool), "--bootstrap-server", "localhost:9092", *rest])
            raise ToolError(f"zookeeper is not a recognized option: the tools ask a broker today: {typed}")


def sentence(error: BaseException) -> str:
    """What an error says, on one line, without the number that an OSError puts in front."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    elif isinstance(error, ApiError):
        text = error.message
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split("\n"))


@contextmanager
def _signals() -> Iterator[None]:
    """SIGINT and SIGTERM raise Termination in the main thread meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Termination(number)

    before = {number: signal.signal(number, terminate) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stops_by(callback: Callable[[], None]) -> Iterator[list[int]]:
    """SIGINT and SIGTERM call `callback` meanwhile, instead of interrupting whatever runs: for work that ends by itself
    when it is asked to (`consumer.wakeup`).  The list that it gives holds the signals that came; a second one
    interrupts.  Main thread."""
    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            raise Termination(number)
        callback()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
