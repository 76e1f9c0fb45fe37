"""The declaration of a tool: name, description, options, subcommands, examples.

Parsing, `--help`, docs/compatibility.md and shell completion are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.option import Arguments, Option


class Grammar(Enum):
    """The libraries with which Apache Kafka's tools parse their flags: joptsimple and argparse4j.

    They differ in the abbreviations that they accept, the texts of errors, and the usage.
    """

    JOPTSIMPLE = "joptsimple"
    ARGPARSE4J = "argparse4j"


class Example(NamedTuple):
    """An example at the end of `--help`: its purpose, and the words after the tool's name."""

    purpose: str
    words: str


class Command(NamedTuple):
    """A subcommand, such as `format` of `kafkapy storage format`.

    `required_groups` names groups of options; exactly one option of each group must be given. `completes` is the kind
    of word that shell completion offers in addition to flags, such as "topic" or "file". `accepts_profile` is True if a
    profile may be used as the file of `--command-config`; a profile is a configuration file of the user with a client's
    properties. It is False if the command also reads other settings from this file.
    """

    name: str
    description: str
    options: tuple[Option, ...]
    required_groups: tuple[str, ...] = ()
    completes: str = ""
    accepts_profile: bool = True


HELP = Option("help", "Print usage information.")
# Under our own names, -h is another form of --help; the parser of Apache Kafka's scripts refuses it.
HELP_WITH_SHORT_FORM = Option("help", "Print usage information.", aliases=("h",))
VERSION = Option("version", "Display Kafka version.")
ARGPARSE_HELP = Option("help", "show this help message and exit", aliases=("h",))


@dataclass(frozen=True)
class Tool:
    """The declaration of a tool. The object does not change after its construction.

    description: the purpose of the tool, printed at the head of `--help`.
    run: the function that carries out a parsed command line. It returns the exit code, or None for 0. It may raise
        UsageError, ToolError, ApiError, ConfigError, OSError (TimeoutError included) or KeyboardInterrupt. `run_tool`
        turns each of them into an exit code, and prints a message for all except KeyboardInterrupt.
    options: the tool's own flags; `all_options` adds `--help` and, unless the grammar is ARGPARSE4J, `--version`.
    commands: the subcommands, each with options of its own (ARGPARSE4J only).
    kafka_name: the program's name in the usage of Apache Kafka's tool, if it is not the script's name.
    error_prefix: the text before the message of a failure other than ToolError, as in Apache Kafka's tool.
    required_groups: the groups of options of which exactly one must be given (ARGPARSE4J only).
    needs_arguments: whether an empty command line prints the help instead of running the tool.
    usage_line: the text for a wrong command line instead of the usage, with `{}` for the error.
    completes: the kind of word that shell completion offers apart from flags, such as "topic" or "file"; "" for none.
    not_here: flags of Apache Kafka's tool that this tool does not accept, each with the reason.
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
    completes: str = ""
    not_here: tuple[tuple[str, str], ...] = ()

    @property
    def all_options(self) -> tuple[Option, ...]:
        """The options of the tool, and --help.

        A tool whose grammar is JOPTSIMPLE also has --version; a tool whose grammar is ARGPARSE4J does not have this
        flag.
        """
        shared = (HELP, VERSION) if self.grammar is Grammar.JOPTSIMPLE else (ARGPARSE_HELP,)
        return (*self.options, *shared)
