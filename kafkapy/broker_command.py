"""The command `kafkapy broker start`: parses arguments, sets up logging and signals, and runs one node (`Broker` or
`ControllerNode`)."""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafkapy.ephemeral import call_at_end_of_input, ephemeral_settings
from kafkapy.errors import ApiError, ConfigError, StopRequested, StorageError
from kafkapy.log_files import open_log_files
from kafkapy.named_tuple import NamedTuple
from kafkapy.readable import is_readable
from kafkapy.service_manager import ServiceManager

if TYPE_CHECKING:
    from kafkapy.broker import Broker
    from kafkapy.config import BrokerConfig
    from kafkapy.config.listener import Listener
    from kafkapy.controller_node import ControllerNode

USAGE = """usage: kafkapy broker start [--config server.properties] [--override key=value ...]
       kafkapy broker start --ephemeral [--until-end-of-input] [--override key=value ...]

Without --config the broker listens on localhost:9092 and keeps its data under the user's data folder.
A configuration file of Apache Kafka works unchanged; --override (repeatable) takes precedence over the file.
The broker runs in the foreground until Ctrl-C; `kafkapy server-stop` stops it from another shell.

With --ephemeral the broker is for tests: it chooses a free port on localhost and prints the port, alone on one line,
when it is ready; warnings go to standard error. It keeps its data in a new temporary directory, which it removes when
it ends. --until-end-of-input makes it end, too, when its standard input ends: if that is a pipe from the process that
has started the broker, the broker does not outlive this process."""
OPTIONS = ("--config", "--override")
SWITCHES = ("--ephemeral", "--until-end-of-input")

# Number of files that an idle broker opens, with room for some topics and clients.
LEAST_OPEN_FILES = 64
DATE_FORMAT = "%Y-%m-%d %H:%M:%S"
LOG_FORMAT = "[%(asctime)s,%(msecs)03d] %(levelname)s %(message)s (%(name)s)"


class UsageError(Exception):
    """An invalid command line."""


# The keys that configure the metrics listener.
METRICS_KEYS = ("kafkapy.metrics.", "listener.name.metrics.", "ssl.")


class Invocation(NamedTuple):
    """The parsed arguments of `kafkapy broker start`.

    config: the path of the configuration file; None without a file.
    overrides: the keys and values of --override.
    is_ephemeral: --ephemeral is given, which excludes a configuration file.
    ends_with_input: --until-end-of-input is given: the broker stops at the end of its standard input.
    """

    config: str | None = None
    overrides: Mapping[str, str] = {}
    is_ephemeral: bool = False
    ends_with_input: bool = False


def parse_arguments(arguments: list[str]) -> Invocation:
    """Returns the parsed arguments. `--opt value` and `--opt=value` are equivalent.

    Raises UsageError for an invalid command line.
    """
    config: str | None = None
    overrides: dict[str, str] = {}
    switches: set[str] = set()
    words = iter(arguments)
    for word in words:
        option, has_value, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if word in SWITCHES:
            switches.add(word)
            continue
        if option not in OPTIONS:
            raise UsageError(f"unknown option {word!r}{nearest(option, (*OPTIONS, *SWITCHES))}")
        if not has_value:
            value = next(words, "")
        if not value:
            raise UsageError(f"{option} needs a value")
        if option == "--config":
            config = value
            continue
        key, has_equals, setting = value.partition("=")
        if not has_equals or not key:
            raise UsageError(f"--override takes key=value, not {value!r}")
        overrides[key.strip()] = setting.strip()
    is_ephemeral, ends_with_input = (switch in switches for switch in SWITCHES)
    if is_ephemeral and config is not None:
        raise UsageError("--ephemeral excludes --config; set keys by --override")
    if ends_with_input and not is_ephemeral:
        raise UsageError("--until-end-of-input needs --ephemeral")
    return Invocation(config, overrides, is_ephemeral, ends_with_input)


def nearest(word: str, known: Sequence[str]) -> str:
    """Returns "; did you mean ...?" with the known word that is most similar to `word`; "" if none is similar."""
    from difflib import get_close_matches  # needed only for an error

    near = get_close_matches(word, known, 1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def set_up_logging(directory: str = "", *, is_ephemeral: bool = False) -> None:
    """Makes all loggers write to standard output, with Kafka's line layout and logger names.

    If `directory` is not "", the loggers that `log_files.LOG_FILES` names write to files in that directory instead. An
    ephemeral broker (`is_ephemeral`) logs only warnings and errors, to standard error. Raises OSError if a file cannot
    be opened.
    """
    logging.raiseExceptions = False  # a closed standard output must not fill standard error
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    level, stream = (logging.WARNING, sys.stderr) if is_ephemeral else (logging.INFO, sys.stdout)
    logging.basicConfig(level=level, stream=stream, format=LOG_FORMAT, datefmt=DATE_FORMAT)
    if directory:
        open_log_files(directory, logging.Formatter(LOG_FORMAT, DATE_FORMAT))


def raise_descriptor_limit() -> None:
    """Increases the limit of open files to the hard limit.

    Raises ConfigError if the hard limit is too low for any broker. Each connection and each partition in use needs at
    least one open file. At the limit connections are not accepted, and a log directory whose segment cannot be opened
    goes offline.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < LEAST_OPEN_FILES:
        raise ConfigError(
            f"at most {hard} files may be open in this process, and a broker opens {LEAST_OPEN_FILES} before its first "
            "client connects: raise the limit (LimitNOFILE of the service, ulimit -Hn)"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class StopRequest:
    """A request to stop the broker, made by a signal or by a thread with a fatal failure; wakes the main thread.

    The request is a byte in a pipe, from which the main thread reads. Python's C signal handler writes it at once, in
    whichever thread the kernel delivers the signal. A handler in Python would not do: it runs in the main thread only,
    and a signal that arrives in another thread, or just before the wait, does not wake the main thread. If such a
    handler set a threading.Event for which the main thread waits, both could also deadlock on the Event's own lock.
    """

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
            numbers.append(signal.SIGHUP)
        for number in numbers:
            signal.signal(number, lambda signal_number, frame: None)

    def make(self) -> None:
        """Requests the stop. Any thread may call this."""
        os.write(self._write_end, b"\0")

    def is_made(self) -> bool:
        """Returns whether a stop was requested; called while the node is starting.

        A SIGHUP counts as a request to stop, because the node cannot reload its configuration file before its start has
        ended.
        """
        return is_readable(self._read_end)

    def wait(self, on_hangup: Callable[[], bool] = lambda: False) -> None:
        """Waits for a stop request.

        `on_hangup()` is called after a SIGHUP: if it returns True the wait continues, otherwise the SIGHUP is a stop
        request.
        """
        while os.read(self._read_end, 1)[0] == signal.SIGHUP and on_hangup():
            pass


def reload(broker: Broker | ControllerNode, path: str | None, overrides: dict[str, str]) -> bool:
    """Reads the configuration file again after a SIGHUP, applies its changes, and returns True.

    Returns False if the broker has no configuration file; the SIGHUP then stops the broker. An invalid file is logged
    and changes nothing.
    """
    from kafkapy.config.broker_file import read_broker_file

    if path is None:
        return False
    try:
        broker.reload({**read_broker_file(path), **overrides})
    except (ConfigError, OSError) as error:
        logging.getLogger("kafka.server.KafkaConfig").error("The configuration was not changed: %s", sentence(error))
    return True


def sentence(error: Exception) -> str:
    """Returns the text of an error, without the error number with which the text of an OSError begins."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    return str(error)


def node_of(config: BrokerConfig, stop_request: StopRequest) -> Broker | ControllerNode:
    """Returns a broker or a controller, according to process.roles.

    After a fatal failure the node calls `stop_request.make()`, so that the process ends. Raises ConfigError for a
    plug-in that cannot be constructed.
    """
    if config.is_broker:
        from kafkapy.broker import Broker

        return Broker(config, on_fatal=stop_request.make, is_stop_requested=stop_request.is_made)
    from kafkapy.controller_node import ControllerNode

    return ControllerNode(config, on_fatal=stop_request.make)


def runs_console(config: BrokerConfig) -> bool:
    """Returns whether the broker runs a console as a child process."""
    return config.is_broker and bool(config.kafkapy_console_listener)


def console_words(config: BrokerConfig, listeners: Sequence[Listener], invocation: Invocation) -> list[str]:
    """Returns the command line, as a list of words, that starts the console as a child process of the broker.

    `listeners` are those for clients; the console connects to the first one that its configuration allows. Raises
    ConfigError if there is none, or if kafkapy.console.arguments cannot be divided into words.
    """
    from kafkapy.console_child import console_command  # only brokers with a console need it

    address, arguments = config.kafkapy_console_listener, config.kafkapy_console_arguments
    return console_command(address, arguments, listeners, metrics_file(config, invocation))


def metrics_file(config: BrokerConfig, invocation: Invocation) -> str | None:
    """Returns the path of the configuration file from which the console learns how to read the metrics listener.

    Returns None if there is no metrics listener, if its port is known only to the broker, or if the file does not have
    all keys of the listener, because the command line overrides some.
    """
    listener = config.kafkapy_metrics_listener
    is_fixed = bool(listener) and listener.rpartition(":")[2].strip() != "0"
    is_in_file = not any(key.startswith(METRICS_KEYS) for key in invocation.overrides)
    return invocation.config if is_fixed and is_in_file else None


def start(arguments: list[str]) -> int:
    """Runs a broker or controller until it is stopped; `arguments` follow the word `start`. Returns the exit code."""
    try:
        invocation = parse_arguments(arguments)
        if not invocation.is_ephemeral:
            return run_node(invocation)
        with ephemeral_settings() as settings:
            return run_node(invocation._replace(overrides={**settings, **invocation.overrides}))
    except UsageError as error:
        print(f"kafkapy broker start: {error}\nSee `kafkapy broker start --help`.", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"kafkapy broker start: {sentence(error)}", file=sys.stderr)
        return 1


def run_node(invocation: Invocation) -> int:
    """Runs a broker or controller until it is stopped, and returns the exit code."""
    from kafkapy.config import BrokerConfig

    path, overrides = invocation.config, dict(invocation.overrides)
    try:
        config = BrokerConfig.load(path, overrides)
        if runs_console(config):
            console_words(config, config.broker_listeners, invocation)  # finds errors before the broker starts
        raise_descriptor_limit()
        set_up_logging(config.kafkapy_log_directory, is_ephemeral=invocation.is_ephemeral)
    except (ConfigError, OSError) as error:
        print(f"kafkapy broker start: {sentence(error)}", file=sys.stderr)
        return 1
    service_manager = ServiceManager()
    stop_request = StopRequest()
    if invocation.ends_with_input:
        call_at_end_of_input(stop_request.make)
    try:
        broker = node_of(config, stop_request)
    except ConfigError as error:  # of a plug-in of a controller
        print(f"kafkapy broker start: {sentence(error)}", file=sys.stderr)
        return 1
    try:
        broker.start()
    except StopRequested:
        broker.abort()
        return 0
    except (ConfigError, StorageError, ApiError, OSError) as error:
        broker.abort()
        print(f"kafkapy broker start: {sentence(error)}", file=sys.stderr)
        return 1
    console = None
    if runs_console(config):
        from kafkapy.console_child import ConsoleChild

        output = sys.stderr if invocation.is_ephemeral else sys.stdout
        bound = broker.endpoints[: len(config.broker_listeners)]
        console = ConsoleChild(console_words(config, bound, invocation), output)
        console.start()
    line = str(broker.endpoints[0].port) if invocation.is_ephemeral else broker.ready_line()
    if not announce(line) and invocation.is_ephemeral:
        stop_request.make()  # no program can learn the port
    service_manager.ready(broker.ready_line())
    service_manager.watch(broker.reactor.post)
    stop_request.wait(lambda: reload(broker, path, overrides))
    service_manager.stopping()
    if console is not None:
        console.stop()
    return broker.stop()


def announce(line: str) -> bool:
    """Prints a line to standard output, and returns whether this was possible.

    An output that cannot be written, such as a closed pipe or a file on a full disk, must not end a broker that serves
    clients.
    """
    try:
        print(line, flush=True)
    except OSError as error:
        logging.getLogger("kafka.server.KafkaServer").warning("Standard output cannot be written: %s", sentence(error))
        return False
    return True


def main(arguments: list[str]) -> int:
    """Runs `kafkapy broker`; `arguments` are the words after it. Returns the exit code."""
    if arguments[:1] in (["--help"], ["-h"]) or (arguments[:1] == ["start"] and {"--help", "-h"} & {*arguments}):
        print(USAGE)
        return 0
    if not arguments:
        print(USAGE, file=sys.stderr)
        return 1
    if arguments[0] != "start":
        print(f"kafkapy broker: {unknown_command(arguments[0])}", file=sys.stderr)
        return 1
    return start(arguments[1:])


def unknown_command(word: str) -> str:
    """Returns the error for a word after `kafkapy broker` that is not `start`."""
    if word == "stop":
        return "to stop brokers use `kafkapy server-stop`"
    return f"unknown command {word!r}{nearest(word, ('start', 'stop'))}\nSee `kafkapy broker --help`."
