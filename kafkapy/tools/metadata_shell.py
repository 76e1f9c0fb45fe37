"""The tool `kafka-metadata-shell`: shows the metadata of a snapshot or of a log directory as a tree."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from itertools import islice

from kafkapy import __version__
from kafkapy.metadata.history import MetadataHistory
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.metadata_commands import BATCH_COMMANDS, Exit, Shell
from kafkapy.tools.metadata_log import append_batches, read_batches, read_directory
from kafkapy.tools.metadata_tree import Node, Provenance, tree_of
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import KAFKA_VERSION, run_tool

_PROMPT = ">> "


def run(arguments: Arguments) -> int:
    """Runs the command of the arguments, or the commands that are typed; returns 0, as Apache Kafka's tool does."""
    if arguments.has("snapshot") == arguments.has("directory"):
        raise UsageError("Exactly one of --snapshot and --directory is required")
    words = arguments.positionals
    if words:
        Shell(_tree(arguments), print).run(words, BATCH_COMMANDS)
        return 0
    print("Loading...")
    root = _tree(arguments)
    print("Starting...\n[ Kafka Metadata Shell ]")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    _run_interactively(Shell(root, print, width))
    return 0


def _tree(arguments: Arguments) -> Mapping[str, Node]:
    if arguments.has("directory"):
        history = read_directory(arguments["directory"])
    else:
        history = _history_of_file(arguments["snapshot"])
    last = next((each for each in reversed(history.records) if not each.is_control), None)
    if last is None:
        provenance = Provenance(history.base.offset - 1, history.base.epoch, 0)
    else:
        provenance = Provenance(last.offset, last.epoch, last.wall_ms)
    local = {"commitId": f"kafkapy-{__version__}", "version": KAFKA_VERSION}
    return tree_of(history.image_at(history.end_offset), provenance, local)


def _history_of_file(path: str) -> MetadataHistory:
    """Returns the records of a snapshot, or of the first segment of a metadata log.

    Raises OSError if the file cannot be read, and ToolError if it is neither a snapshot nor such a segment.
    """
    if os.path.isdir(path):
        raise ToolError(f"{path} is a directory: use --directory")
    with open(path, "rb"):
        pass  # an unreadable file raises here
    batches = read_batches(path)
    if not batches:
        raise ToolError(f"{path} is neither a snapshot nor a segment of the metadata log")
    history = MetadataHistory()
    try:
        append_batches(history, batches)
    except ValueError as error:
        raise ToolError(f"{path} does not begin with the first record of the metadata: {error}") from error
    return history


def _run_interactively(shell: Shell) -> None:
    """Reads and runs lines until `exit` or the end of the input."""
    if sys.stdin.isatty():
        _prepare_terminal(shell)
    try:
        while True:
            shell.run_line(input(_PROMPT))
    except Exit:
        return
    except EOFError:
        print()


def _prepare_terminal(shell: Shell) -> None:
    """Switches on line editing and completion by the Tab key."""
    import readline  # its import changes how input() reads

    def complete(word: str, index: int) -> str | None:
        found = shell.completions(readline.get_line_buffer()[: readline.get_endidx()], word)
        return next(islice(found, index, None), None)

    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


TOOL = Tool(
    name="metadata-shell",
    description="The Apache Kafka metadata shell: shows the metadata of a cluster as a tree of directories and files.",
    run=run,
    options=(
        Option(
            "snapshot",
            "The metadata snapshot file to read, or the first segment of a metadata log.",
            "SNAPSHOT",
            aliases=("s",),
            completes="file",
        ),
        Option(
            "directory",
            "The log directory of a running or a stopped node, whose metadata log is read instead.",
            "DIRECTORY",
            aliases=("d",),
            is_ours=True,
            completes="directory",
        ),
    ),
    examples=(
        Example("The state of a topic's partitions", "--directory /var/lib/kafkapy tree image/topics/byName/orders"),
        Example("A shell for a snapshot", "--snapshot 00000000000000001083-0000000007.checkpoint"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
