"""The commands of the metadata shell, which shows the metadata of a cluster as a tree of directories and files.

The commands are cat, cd, exit, find, help, history, ls, man, pwd and tree, with the texts of `kafka-metadata-shell`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.metadata_paths import Found, components, expand, node_at, words_of
from kafkapy.tools.metadata_tree import Node

# Commands that can be arguments of the program.
BATCH_COMMANDS = ("cat", "find", "ls", "tree")
_LEVEL = "  "
_COLUMN_GAP = 2
_HELP_COLUMN = 25


class Refusal(Exception):
    """A command line that the shell does not accept; the message is printed."""


class Exit(Exception):
    """Raised by the command `exit`, which ends the shell."""


class _Command(NamedTuple):
    """A command of the shell and its argument, which `usage` and `help` describe.

    The command accepts from `least` to `most` words; there is no limit if `most` is None.
    """

    description: str
    argument: str
    usage: str
    help: str
    least: int
    most: int | None


def _no_argument(description: str) -> _Command:
    return _Command(description, "", "", "", 0, 0)


COMMANDS = {
    "cat": _Command(
        "Show the contents of metadata files.",
        "targets",
        "targets [targets ...]",
        "The metadata files to display.",
        1,
        None,
    ),
    "cd": _Command("Set the current working directory.", "target", "[target]", "The directory to change to.", 0, 1),
    "exit": _no_argument("Exit the metadata shell."),
    "find": _Command(
        "Search for nodes in the directory hierarchy.",
        "paths",
        "[paths [paths ...]]",
        "The paths to start at.",
        0,
        None,
    ),
    "help": _no_argument("Display this help message."),
    "history": _Command(
        "Print command history.", "numEntriesToShow", "[numEntriesToShow]", "The number of entries to show.", 0, 1
    ),
    "ls": _Command(
        "List metadata nodes.", "targets", "[targets [targets ...]]", "The metadata node paths to list.", 0, None
    ),
    "man": _Command(
        "Show the help text for a specific command.", "cmd", "cmd", "The command to get help text for.", 1, 1
    ),
    "pwd": _no_argument("Print the current working directory."),
    "tree": _Command(
        "Show the contents of metadata nodes in a tree structure.",
        "targets",
        "targets [targets ...]",
        "The metadata nodes to display.",
        1,
        None,
    ),
}
# The page of `help`; the blanks of its last entry are Kafka's.
_HELP = "".join(f"    {name:<21}{each.description}\n" for name, each in COMMANDS.items() if name != "tree")
HELP_PAGE = f"""Welcome to the Apache Kafka metadata shell.

usage:  {{{",".join(COMMANDS)}}} ...

positional arguments:
  {{{",".join(COMMANDS)}}}
{_HELP}    tree                 Show the contents  of  metadata  nodes  in  a tree
                         structure."""


class Shell:
    """The state of a shell: the tree, the current directory and the lines typed so far. Not thread-safe."""

    def __init__(self, root: Mapping[str, Node], write: Callable[[str], None], width: int = 0) -> None:
        """`write` prints a line. `width` is the number of characters in a line of the terminal, or 0 to print one name
        per line.
        """
        self.root = root
        self.directory: tuple[str, ...] = ()
        self.history: list[str] = []
        self._write = write
        self._width = width
        self._handlers: dict[str, Callable[[list[str]], None]] = {
            "cat": self._cat,
            "cd": self._cd,
            "exit": self._exit,
            "find": self._find,
            "help": lambda words: self._write(HELP_PAGE),
            "history": self._history,
            "ls": self._ls,
            "man": self._man,
            "pwd": lambda words: self._write("/" + "/".join(self.directory)),
            "tree": self._tree,
        }

    def run_line(self, line: str) -> None:
        """Runs the command in a line, and adds the line to the history. Raises Exit for the command `exit`."""
        text = line.rstrip()
        if text and not text.startswith(" ") and self.history[-1:] != [text]:
            self.history.append(text)
        words = words_of(line)
        if words:
            self.run(words)

    def run(self, words: Sequence[str], accepted: Sequence[str] = tuple(COMMANDS)) -> None:
        """Runs the command `words[0]` with the following words as its arguments, or prints why the command is refused.

        `accepted` has the names of the commands that may be run. Raises Exit for the command `exit`.
        """
        name, rest = words[0], list(words[1:])
        try:
            if name not in accepted:
                choices = ", ".join(f"'{each}'" for each in accepted)
                raise Refusal(f"invalid choice: '{name}' (choose from {choices})")
            if {"-h", "--help"} & set(rest):
                self._write(_help_of(name))
                return
            _check(COMMANDS[name], rest)
            self._handlers[name](rest)
        except Refusal as refusal:
            self._write(str(refusal))

    def _found(self, command: str, paths: Sequence[str], reason: str) -> Iterator[Found]:
        """Yields the nodes that the paths name; for each path that names no node, prints a line with `command`, the
        path and `reason`."""
        for path in paths:
            found = list(expand(self.root, path, self.directory))
            if not found:
                self._write(f"{command}: {path}: {reason}.")
            yield from found

    def _cat(self, paths: list[str]) -> None:
        for path in paths:
            for found in self._found("cat", [path], "No such file or directory"):
                if isinstance(found.node, Mapping):
                    self._write(f"cat: {_shown(found, path)}: Is a directory")
                else:
                    self._write(found.node())

    def _cd(self, paths: list[str]) -> None:
        path = paths[0] if paths else "/"
        names = components(path, self.directory)
        node = node_at(self.root, names)
        if node is None:
            raise Refusal(f"cd: {path}: no such directory.")
        if not isinstance(node, Mapping):
            raise Refusal(f"cd: {path}: not a directory.")
        self.directory = names

    def _exit(self, words: list[str]) -> None:
        raise Exit

    def _find(self, paths: list[str]) -> None:
        for path in paths or ["."]:
            for found in self._found("find", [path], "no such file or directory"):
                self._find_below(found.node, _shown(found, path))

    def _find_below(self, node: Node, path: str) -> None:
        self._write(path or "/")
        if isinstance(node, Mapping):
            for name in sorted(node):
                self._find_below(node[name], f"{path.rstrip('/')}/{name}")

    def _history(self, words: list[str]) -> None:
        try:
            count = int(words[0]) if words else len(self.history)
        except ValueError:
            text = words[0]
            raise Refusal(
                f"argument numEntriesToShow: could not convert '{text}' to Integer (For input string: \"{text}\")"
            ) from None
        first = max(len(self.history) - max(count, 0), 0)
        for number in range(first, len(self.history)):
            self._write(f"{number:>5}  {self.history[number]}")

    def _ls(self, paths: list[str]) -> None:
        found = list(self._found("ls", paths or ["."], "no such file or directory"))
        files = [each for each in found if not isinstance(each.node, Mapping)]
        directories = [(each.path, each.node) for each in found if isinstance(each.node, Mapping)]
        self._write_names(sorted(each.path[-1] for each in files))
        for index, (path, node) in enumerate(directories):
            if files or index:
                self._write("")
            if files or len(directories) > 1:
                self._write(f"{path[-1] if path else '/'}:")
            self._write_names(sorted(node))

    def _write_names(self, names: list[str]) -> None:
        """Prints names in columns, which are filled from top to bottom."""
        rows = max(len(names), 1)
        columns = [names]
        for height in range(1, len(names) + 1):
            columns = [names[start : start + height] for start in range(0, len(names), height)]
            rows = height
            if sum(max(map(len, each)) + _COLUMN_GAP for each in columns) <= self._width or len(columns) == 1:
                break
        if not names:
            return
        widths = [max(map(len, each)) + _COLUMN_GAP for each in columns]
        for row in range(rows):
            cells = [f"{each[row]:<{width}}" for each, width in zip(columns, widths, strict=True) if row < len(each)]
            self._write("".join(cells).rstrip())

    def _man(self, words: list[str]) -> None:
        if words[0] not in COMMANDS:
            raise Refusal(f"man: unknown command {words[0]}. Type help to get a list of commands.")
        command = COMMANDS[words[0]]
        self._write(f"{words[0]}: {command.description}\n")
        self._write(f"usage: {words[0]} {command.usage}".rstrip())
        if command.argument:
            self._write(_arguments(command))

    def _tree(self, paths: list[str]) -> None:
        for found in self._found("tree", paths, "No such file or directory"):
            self._write_tree(found.node, "")

    def _write_tree(self, node: Node, indent: str) -> None:
        if not isinstance(node, Mapping):
            self._write(indent + node())
            return
        for name in sorted(node):
            self._write(f"{indent}{name}:")
            self._write_tree(node[name], indent + _LEVEL)

    def completions(self, line: str, word: str) -> list[str]:
        """Returns the words that can replace `word`, the last one of `line`.

        They are commands if `word` is the first word of the line, otherwise paths.
        """
        if not line[: len(line) - len(word)].strip():
            return [f"{name} " for name in COMMANDS if name.startswith(word)]
        head, slash, start = word.rpartition("/")
        node = node_at(self.root, components(head + slash, self.directory))
        if not isinstance(node, Mapping):
            return []
        names = [name for name in sorted(node) if name.startswith(start)]
        return [f"{head}{slash}{name}{'/' if isinstance(node[name], Mapping) else ' '}" for name in names]


def _shown(found: Found, path: str) -> str:
    """Returns the text for a node that `path` names.

    It is the path as the user typed it or, if that is a pattern, the node's own path.
    """
    return "/" + "/".join(found.path) if any(letter in path for letter in "*?{") else path


def _check(command: _Command, words: list[str]) -> None:
    """Raises Refusal unless the command accepts the words."""
    if flag := next((each for each in words if each.startswith("-") and not each[1:].isdigit() and each != "-"), None):
        raise Refusal(f"unrecognized arguments: '{flag}'")
    if len(words) < command.least:
        raise Refusal("too few arguments")
    if command.most is not None and len(words) > command.most:
        raise Refusal(f"unrecognized arguments: '{' '.join(words[command.most :])}'")


def _arguments(command: _Command) -> str:
    return f"\npositional arguments:\n  {command.argument:<{_HELP_COLUMN - 2}}{command.help}"


def _help_of(name: str) -> str:
    command = COMMANDS[name]
    usage = f"usage:  {name} [-h] {command.usage}".rstrip()
    positional = f"{_arguments(command)}\n" if command.argument else ""
    return f"{usage}\n{positional}\noptional arguments:\n  {'-h, --help':<23}show this help message and exit"
