"""The declarations of all tools, including the commands that parse their arguments by themselves.

Completion scripts and manual pages are made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from kafkapy.tools.declaration import Command, Grammar, Tool
from kafkapy.tools.option import Option

SHELLS = ("bash", "zsh", "fish")


def _no_run(arguments: object) -> int:
    raise AssertionError("this declaration only describes flags")


# The tools that parse their arguments by themselves.
BROKER = Tool(
    name="broker",
    description="Starts a broker.",
    run=_no_run,
    grammar=Grammar.ARGPARSE4J,
    commands=(
        Command(
            "start",
            "start a broker",
            (
                Option("config", "The broker's configuration file.", "file", completes="file"),
                Option("override", "A key and value of the configuration.", "key=value", completes="broker-key"),
                Option("ephemeral", "A broker for tests: a random port, and data that is removed at the end."),
                Option("until-end-of-input", "With --ephemeral: end when standard input ends."),
            ),
        ),
    ),
)
COMPLETION = Tool(
    name="completion",
    description="Prints or installs a completion script.",
    run=_no_run,
    grammar=Grammar.ARGPARSE4J,
    commands=tuple(
        Command(
            shell,
            f"completion of {shell}",
            (Option("install", "Write the script to a directory.", "DIRECTORY", completes="directory"),),
        )
        for shell in SHELLS
    ),
)
INSTALL_LINKS = Tool(
    name="install-links",
    description="Creates links with the names of Apache Kafka's scripts.",
    run=_no_run,
    grammar=Grammar.ARGPARSE4J,
    completes="directory",
)
MANUAL = Tool(
    name="man",
    description="Prints or installs manual pages.",
    run=_no_run,
    grammar=Grammar.ARGPARSE4J,
    options=(Option("install", "Write the pages of all tools to a directory.", "DIRECTORY", completes="directory"),),
    completes="tool",
)
CONTAINER_START = Tool(
    name="container-start",
    description="Starts a broker in a container, configured by environment variables.",
    run=_no_run,
    grammar=Grammar.ARGPARSE4J,
    options=(
        Option("defaults", "The configuration file if nothing else is configured.", "FILE", completes="file"),
        Option("mounted", "A configuration file that precedes the variables, if it exists.", "FILE", completes="file"),
        Option("final", "The configuration file that is written.", "FILE", completes="file"),
        Option("override", "A key and value of the configuration.", "key=value", completes="broker-key"),
    ),
)


def declared_tools(tools: Mapping[str, tuple[str, str]]) -> list[Tool]:
    """Returns the declarations of all tools and commands; `tools` maps each name to its module and description."""
    declared = [module.TOOL for name in tools if hasattr(module := import_module(tools[name][0]), "TOOL")]
    return [*declared, BROKER, COMPLETION, INSTALL_LINKS, MANUAL, CONTAINER_START]
