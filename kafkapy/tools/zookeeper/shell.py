"""The tool `zookeeper-shell`: shows and changes znodes, with the commands and the output of ZooKeeper 3.9's shell."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from kafkapy.decimal_text import is_number
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.tools.zookeeper.client import ZOOKEEPER_SESSION_TIMEOUT_MS, ZooKeeperClient
from kafkapy.tools.zookeeper.command_words import CommandError, parse_words, split
from kafkapy.tools.zookeeper.errors import ConnectError, ZooKeeperRequestError
from kafkapy.tools.zookeeper.replies import Event, State
from kafkapy.tools.zookeeper.shell_commands import COMMANDS, LONG_FLAGS, ShellCommand
from kafkapy.tools.zookeeper.shell_output import complain
from kafkapy.tools.zookeeper.shell_quotas import QUOTA_COMMANDS

COMMAND_NOT_FOUND = 127
_HISTORY_LINES = 10
_ALL = {**COMMANDS, **QUOTA_COMMANDS}
# The commands that need no session, with their usage.
_LOCAL = {
    "connect": "host:port",
    "history": "",
    "printwatches": "on|off",
    "quit": "",
    "redo": "cmdno",
}
_STATE_NAMES = {
    State.DISCONNECTED: "Disconnected",
    State.SYNC_CONNECTED: "SyncConnected",
    State.AUTH_FAILED: "AuthFailed",
    State.EXPIRED: "Expired",
    State.CLOSED: "Closed",
}
# The texts of errors, which end with the path.
_ERROR_TEXTS = {
    -101: "Node does not exist: ",
    -108: "Ephemerals cannot have children: ",
    -110: "Node already exists: ",
    -111: "Node not empty: ",
    -119: "Not a read-only call: ",
    -114: "Acl is not valid : ",
    -102: "Insufficient permission : ",
    -8: "Arguments are not valid : ",
    -103: "version No is not valid : ",
    -125: "Quota has exceeded : ",
}


class Quit(Exception):
    """The exception by which the command `quit` ends the shell."""


class ZooKeeperShell:
    """The state of a shell: its session, the typed lines, the last exit code, and whether events are printed."""

    def __init__(self, address: str, timeout_ms: int, *, accepts_read_only: bool = False) -> None:
        self._address = address
        self._timeout_ms = timeout_ms
        self._accepts_read_only = accepts_read_only
        self._history: list[str] = []
        self._prints_events = True
        self._client: ZooKeeperClient | None = None
        self.exit_code = 0

    @property
    def prompt(self) -> str:
        state = "CONNECTED" if self._client is not None and self._client.is_alive else "CLOSED"
        return f"[zk: {self._address}({state}) {len(self._history)}] "

    def connect(self, address: str) -> None:
        """Closes the present session, if there is one, and opens a session at `address`, a connect string.

        Raises ToolError if that fails.
        """
        self.close()
        self._address = address
        try:
            self._client = ZooKeeperClient(
                address,
                timeout_ms=self._timeout_ms,
                on_event=self._print_event,
                accepts_read_only=self._accepts_read_only,
            )
            self._client.connect()
        except (ValueError, ConnectError) as error:
            self._client = None
            raise ToolError(f"Connection to ZooKeeper at {address} could not be established ({error}).") from None

    def close(self) -> None:
        """Closes the session, if there is one."""
        if self._client is not None:
            self._client.close()

    def end(self) -> None:
        """Closes the session without printing the event of its end."""
        self._prints_events = False
        self.close()

    def run_line(self, line: str) -> None:
        """Runs a typed line, which becomes part of the history."""
        words = split(line)
        if words:
            self._history.append(line)
            self.run(words)

    def run(self, words: list[str]) -> None:
        """Runs one command and sets `exit_code`; prints the error if the command fails.

        Raises Quit if the command is `quit`.
        """
        self.exit_code = 0
        try:
            self._run(words)
        except CommandError as error:
            complain(str(error))
            self.exit_code = error.exit_code
        except ZooKeeperRequestError as error:
            text = _ERROR_TEXTS.get(error.code)
            complain(str(error) if text is None else text + ("null" if error.path is None else error.path))
            self.exit_code = 1
        except (ValueError, OSError, ToolError) as error:
            complain(str(error))
            self.exit_code = 1

    def _run(self, words: list[str]) -> None:
        name, *rest = words
        if name not in _ALL and name not in _LOCAL:
            complain(usage())
            raise CommandError(f"Command not found: Command not found {name}", COMMAND_NOT_FOUND)
        if name == "quit":
            raise Quit
        if name == "redo" and rest:
            self._redo(rest[0])
            return
        if name == "history":
            start = max(0, len(self._history) - 1 - _HISTORY_LINES)
            for number, line in enumerate(self._history[start:], start):
                print(f"{number} - {line}")
        elif name == "printwatches":
            if rest:
                self._prints_events = rest[0] == "on"
            else:
                print(f"printwatches is {'on' if self._prints_events else 'off'}")
        elif name == "connect":
            self.connect(rest[0] if rest else self._address)
        elif self._client is None or not self._client.is_alive:
            print("Not connected")
        elif name in _ALL:
            _carry_out(name, _ALL[name], self._client, rest)

    def _redo(self, text: str) -> None:
        if not is_number(text) or int(text) >= len(self._history) - 1:
            raise CommandError("Command index out of range")
        line = self._history[int(text)]
        words = split(line)
        if words[0] == "redo":
            raise CommandError("No redoing redos")
        self._history[-1] = line
        self._run(words)

    def _print_event(self, event: Event) -> None:
        if self._prints_events:
            kind = "".join(part.capitalize() for part in event.kind.name.split("_"))
            path = "null" if event.path is None else event.path
            print(
                f"\nWATCHER::\n\nWatchedEvent state:{_STATE_NAMES[event.state]} type:{kind} path:{path} "
                f"zxid: {event.zxid}",
                flush=True,
            )


def _carry_out(name: str, command: ShellCommand, client: ZooKeeperClient, rest: list[str]) -> None:
    words = parse_words([LONG_FLAGS.get(word, word) for word in rest] if name == "reconfig" else rest, command.flags)
    if len(words.arguments) < command.least_arguments:
        raise CommandError(f"{name} {command.usage}{command.explains}")
    if command.deprecated and len(words.arguments) > 1:
        complain(f"'{command.deprecated}' has been deprecated. Please use '{name} {_current(command)}' instead.")
    command.run(client, words)


def _current(command: ShellCommand) -> str:
    """Returns the arguments of a command in the form that is usual today.

    The warning about the deprecated form of a command recommends them.
    """
    return {"ls path [watch]": "[-w] path", "get path [watch]": "[-s] [-w] path"}.get(command.deprecated, command.usage)


def usage() -> str:
    """Returns the list of commands with their usage, as text."""
    usages = {**{name: command.usage for name, command in _ALL.items()}, **_LOCAL}
    lines = [f"\t{name} {usages[name]}" for name in sorted(usages)]
    return "\n".join(["ZooKeeper -server host:port -client-configuration properties-file cmd args", *lines])


def run(arguments: Arguments) -> int:
    """Runs the command in the arguments or, if they have no command, the commands that the user types; returns the exit
    code.

    This is the exit code of the last command.
    """
    address, *words = [*arguments.values("server"), *arguments.positionals] or ["localhost:2181"]
    shell = ZooKeeperShell(address, arguments["timeout"], accepts_read_only=arguments.has("r"))
    print(f"Connecting to {address}", flush=True)
    try:
        if words:
            if words[0] in _ALL or words[0] == "quit":
                shell.connect(address)
            shell.run(words)
        else:
            print("Welcome to ZooKeeper!", flush=True)
            _run_lines(shell, address)
    except Quit:
        shell.close()
    finally:
        shell.end()
    return shell.exit_code


def _run_lines(shell: ZooKeeperShell, address: str) -> None:
    is_terminal = sys.stdin.isatty()
    print(f"JLine support is {'enabled' if is_terminal else 'disabled'}", flush=True)
    shell.connect(address)
    for line in _typed_lines(shell) if is_terminal else _piped_lines(sys.stdin):
        shell.run_line(line)
        sys.stdout.flush()


def _piped_lines(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line.rstrip("\r\n")


def _typed_lines(shell: ZooKeeperShell) -> Iterator[str]:
    """Yields lines with line editing, a history and a prompt, until the end of the input."""
    import readline  # its import changes how input() reads

    readline.set_completer_delims(" \t\n")
    names = sorted([*_ALL, *_LOCAL])
    readline.set_completer(
        lambda word, index: next(iter([name for name in names if name.startswith(word)][index : index + 1]), None)
    )
    readline.parse_and_bind("tab: complete")
    while True:
        try:
            yield input(shell.prompt)
        except EOFError:
            print()
            return


TOOL = Tool(
    name="zookeeper-shell",
    description="The ZooKeeper shell: shows and changes the znodes of a listener for ZooKeeper's clients, or of "
    "ZooKeeper. Without a command it reads commands from standard input; `help` lists them.",
    run=run,
    needs_arguments=True,
    options=(
        Option("server", "The servers, as host:port[,host:port ...][/path]; the first word may name them too.", "host"),
        Option("timeout", "The session timeout in milliseconds.", "ms", INTEGER, ZOOKEEPER_SESSION_TIMEOUT_MS),
        Option("r", "Accept a server that can only read."),
        Option("waitforconnection", "Ignored: the shell always waits for the connection.", is_deprecated=True),
    ),
    examples=(
        Example("The brokers of a cluster", "localhost:2181 ls /brokers/ids"),
        Example("A broker's registration", "localhost:2181 get /brokers/ids/1"),
        Example("A shell below a path", "localhost:2181/kafka"),
    ),
    not_here=(
        ("zk-tls-config-file", "this tool does not use TLS"),
        ("client-configuration", "this tool uses neither TLS nor SASL"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, _separated(arguments))


def _separated(words: list[str]) -> list[str]:
    """Returns the command line with `--` before the first word that is neither a flag of this tool nor the value of a
    flag.

    This word is the address or, if `-server` has named the address, the command of ZooKeeper's shell, which has flags
    of its own. The address needs no `-server`, because Apache Kafka's script puts `-server` before the user's words.
    Returns `words` unchanged if a flag is unknown, or if there is no such word.
    """
    options = {flag.lstrip("-"): option for option in TOOL.all_options for flag in option.flags}
    position = 0
    while position < len(words) and words[position].startswith("-"):
        name, has_value, _ = words[position].lstrip("-").partition("=")
        option = options.get(name)
        if option is None:
            return words  # the parser reports the flag
        position += 2 if option.argument is not None and not has_value else 1
    return [*words[:position], "--", *words[position:]] if position < len(words) else words
