"""Runs a tool: parses its command line, prints its help, turns errors and signals into lines and exit codes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kafkapy import __version__
from kafkapy.errors import ApiError, ConfigError, ProtocolViolation
from kafkapy.tools.declaration import ARGPARSE_HELP, HELP_WITH_SHORT_FORM, Command, Grammar, Tool
from kafkapy.tools.default_cluster import fill_in
from kafkapy.tools.old_flags import translate
from kafkapy.tools.option import Arguments, ToolError, UsageError
from kafkapy.tools.option_help import help_page, short_usage_error, usage_error
from kafkapy.tools.option_parser import OptionParser

# The release of Apache Kafka that the tools correspond to; `--version` prints it.
KAFKA_VERSION = "4.3.0"
# If this environment variable is set, an unexpected error is raised with its traceback.
TRACE_VARIABLE = "KAFKAPY_TRACE"


class Termination(KeyboardInterrupt):
    """Raised when SIGINT or SIGTERM arrives. The tool closes its resources and exits with 128 + the signal's number, as
    Java does."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def script_name() -> str:
    """Returns the name of Apache Kafka's script by which this program was started through a link; "" without a link."""
    name = Path(sys.argv[0]).name
    return name if name.startswith(("kafka-", "zookeeper-")) else ""


def program_name(tool: Tool) -> str:
    """Returns what the user typed to start the tool: `kafka-topics.sh` or `kafkapy topics`."""
    return script_name() or f"kafkapy {tool.name}"


def run_tool(tool: Tool, words: Sequence[str]) -> int:
    """Runs a tool and returns its exit code. `words` is the command line after the tool's name.

    Prints a message about each error instead of raising it. There are two exceptions: BrokenPipeError is raised and, if
    an environment variable asks for tracebacks, an unexpected error is raised too.
    """
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
    is_script = bool(script_name())
    words = translate(tool.name, words)
    try:
        if not words and tool.needs_arguments and tool.grammar is Grammar.JOPTSIMPLE:
            sys.stderr.write(help_page(tool, program_name(tool)))
            return 1
        if not words and tool.needs_arguments and not tool.commands:
            sys.stdout.write(help_page(tool, program_name(tool)))
            return 0
        command, arguments = parse(tool, words)
        if arguments.has("help"):
            (sys.stderr if is_script else sys.stdout).write(help_page(tool, program_name(tool), command))
            return 1 if is_script and tool.grammar is Grammar.JOPTSIMPLE else 0
        if tool.grammar is Grammar.JOPTSIMPLE and arguments.has("version"):
            print(KAFKA_VERSION if is_script else f"{KAFKA_VERSION} (kafkapy {__version__})")
            return 0
        return tool.run(arguments) or 0
    except UsageError as error:
        sys.stdout.flush()
        sys.stderr.write(_usage_text(tool, words, error))
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


def _usage_text(tool: Tool, words: Sequence[str], error: UsageError) -> str:
    """Returns the text for a refused command line.

    If the program was started by the name of Apache Kafka's script, the error is followed by the table of all options,
    as that script prints it. Under our own name, only a reference to `--help` follows, because the long table scrolls
    the error off the screen. Tools that use argparse4j, or that have a `usage_line`, print the same text under both
    names.
    """
    if script_name() or tool.grammar is not Grammar.JOPTSIMPLE or tool.usage_line:
        return usage_error(tool, program_name(tool), str(error), command_of(tool, words))
    return short_usage_error(tool, program_name(tool), error)


def _fail(message: str, exit_code: int) -> int:
    """Prints one line to standard error, after the tool's output on standard output; returns `exit_code`."""
    sys.stdout.flush()
    print(message, file=sys.stderr)
    return exit_code


def parse(tool: Tool, words: Sequence[str]) -> tuple[Command | None, Arguments]:
    """Returns the subcommand that the command line names, and the arguments in it.

    `words` is the command line after the tool's name. The subcommand is None if the tool has no subcommands, or if the
    command line begins with `--help`. Raises UsageError for a command line that does not follow the tool's declaration.
    """
    if tool.grammar is Grammar.JOPTSIMPLE:
        options = tool.all_options
        if not script_name() and not any("-h" in option.flags for option in options):
            options = (*options, HELP_WITH_SHORT_FORM)
        return None, OptionParser(options, fill_in(options)).parse(words)
    from kafkapy.tools.argument_parser import ArgumentParser  # most tools do not need argparse

    if not tool.commands or words[:1] in (["--help"], ["-h"]):
        return None, ArgumentParser(tool.all_options, tool.required_groups, fill_in(tool.all_options)).parse(words)
    command = command_of(tool, words)
    position = _command_position(tool, words)
    if command is None:
        choices = ", ".join(f"'{each.name}'" for each in tool.commands)
        if position >= len(words) or words[position].startswith("-"):
            raise UsageError("too few arguments")
        raise UsageError(f"invalid choice: '{words[position]}' (choose from {choices})")
    options = (*tool.options, *command.options, ARGPARSE_HELP)
    filler = fill_in(options, accepts_profile=command.accepts_profile)
    parser = ArgumentParser(options, command.required_groups, filler)
    return command, parser.parse([*words[:position], *words[position + 1 :]], command.name)


def _command_position(tool: Tool, words: Sequence[str]) -> int:
    """Returns the index in `words` at which the subcommand is expected.

    This is the index of the first word that is neither a flag of the tool itself nor the value of such a flag; only
    flags with a value are considered. If there is no such word, the index is outside of `words`: `len(words)`, or
    `len(words) + 1` if the last word is a flag without its value.
    """
    flags = {flag for option in tool.options if option.argument is not None for flag in option.flags}
    position = 0
    while position < len(words) and words[position].partition("=")[0] in flags:
        position += 1 if "=" in words[position] else 2
    return position


def command_of(tool: Tool, words: Sequence[str]) -> Command | None:
    """Returns the subcommand that the words name; None if they do not name one."""
    position = _command_position(tool, words)
    return next((each for each in tool.commands if position < len(words) and each.name == words[position]), None)


def sentence(error: BaseException) -> str:
    """Returns an error's text on one line, without the number that OSError puts before it."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    elif isinstance(error, ApiError):
        text = error.message
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split("\n"))


@contextmanager
def _signals() -> Iterator[None]:
    """Returns a context manager within which SIGINT and SIGTERM raise Termination.

    It does nothing outside of the main thread, because only that thread may set handlers of signals.
    """
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
    """Returns a context manager within which SIGINT and SIGTERM call `callback` instead of interrupting the code.

    Use it for work that a call such as `consumer.wakeup` can end. The context manager yields a list, to which each
    received signal is appended. The second signal raises Termination. Only the main thread may call it.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            raise Termination(number)
        callback()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
