"""`kafkapy broker start`: arguments, logging and signals around one `Broker`."""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkapy.errors import ApiError, ConfigError, StorageError
from kafkapy.service_manager import ServiceManager

if TYPE_CHECKING:
    from kafkapy.broker import Broker

USAGE = """usage: kafkapy broker start [--config server.properties] [--override key=value ...]

Without --config the broker listens on localhost:9092 and keeps its data under the user's data folder.
A configuration file of Apache Kafka works as it is; --override (repeatable) beats the file."""

# Open files of an idle broker, with room for some topics and clients.
LEAST_OPEN_FILES = 64
LOG_FORMAT = "[%(asctime)s,%(msecs)03d] %(levelname)s %(message)s (%(name)s)"


class UsageError(Exception):
    """A command line that cannot be understood; the text says what was expected."""


def parse_arguments(arguments: list[str]) -> tuple[str | None, dict[str, str]]:
    """The configuration file, if any, and the overrides. `--opt value` and `--opt=value` are the same."""
    config: str | None = None
    overrides: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        option, has_value, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option not in ("--config", "--override"):
            raise UsageError(f"unknown option {word!r}")
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
    return config, overrides


def set_up_logging() -> None:
    """To standard output, with Kafka's line layout and logger names."""
    logging.raiseExceptions = False  # a closed standard output must not fill standard error
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format=LOG_FORMAT, datefmt="%Y-%m-%d %H:%M:%S")


def raise_descriptor_limit() -> None:
    """As many open files as this process may have: a partition that is in use takes one, and so does a connection.

    Without one a connection is not accepted, and a log directory whose segment cannot be opened goes offline.
    ConfigError if there are too few to begin with.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < LEAST_OPEN_FILES:
        raise ConfigError(
            f"at most {hard} files may be open in this process, and a broker takes {LEAST_OPEN_FILES} before its first "
            "client: raise the limit (LimitNOFILE of the service, ulimit -Hn)"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class StopRequest:
    """Wakes the main thread when a signal, or a thread that met a failure, wants the broker to stop.

    A pipe that Python's own C handler writes to, whichever thread the kernel gave the signal: a threading.Event
    deadlocks when a handler meets it in the midst of `wait`, and a Python handler runs only when the main thread wakes
    up, which a signal to another thread, or one just before the wait, does not make it do.
    """

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup wants it
            numbers.append(signal.SIGHUP)
        for number in numbers:
            signal.signal(number, lambda signal_number, frame: None)

    def make(self) -> None:
        """Any thread, any number of times far below the size of a pipe."""
        os.write(self._write_end, b"\0")

    def wait(self, on_hangup: Callable[[], bool] = lambda: False) -> None:
        """Until a stop is wanted; a SIGHUP is none if `on_hangup` says that it was for something else."""
        while os.read(self._read_end, 1)[0] == signal.SIGHUP and on_hangup():
            pass


def reload(broker: Broker, path: str | None, overrides: dict[str, str]) -> bool:
    """SIGHUP: the configuration file is read again. Without one it is what it is to Kafka: a reason to stop."""
    from kafkapy.config.broker_file import read_broker_file

    if path is None:
        return False
    try:
        broker.reload({**read_broker_file(path), **overrides})
    except (ConfigError, OSError) as error:
        logging.getLogger("kafka.server.KafkaConfig").error("The configuration stays as it is: %s", sentence(error))
    return True


def sentence(error: Exception) -> str:
    """What an error says, without the number that an OSError puts in front."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    return str(error)


def start(arguments: list[str]) -> int:
    from kafkapy.broker import Broker
    from kafkapy.config import BrokerConfig

    try:
        path, overrides = parse_arguments(arguments)
        config = BrokerConfig.load(path, overrides)
        raise_descriptor_limit()
    except UsageError as error:
        print(f"kafkapy broker start: {error}\n\n{USAGE}", file=sys.stderr)
        return 1
    except (ConfigError, OSError) as error:
        print(f"kafkapy broker start: {sentence(error)}", file=sys.stderr)
        return 1
    set_up_logging()
    service_manager = ServiceManager()
    stop_request = StopRequest()
    broker = Broker(config, on_fatal=stop_request.make)
    try:
        broker.start()
    except (ConfigError, StorageError, ApiError, OSError) as error:
        broker.abort()
        print(f"kafkapy broker start: {sentence(error)}", file=sys.stderr)
        return 1
    print(broker.ready_line(), flush=True)
    service_manager.ready(broker.ready_line())
    service_manager.watch(broker.reactor.post)
    stop_request.wait(lambda: reload(broker, path, overrides))
    service_manager.stopping()
    return broker.stop()


def main(arguments: list[str]) -> int:
    if arguments[:1] != ["start"]:
        print(USAGE, file=sys.stdout if arguments[:1] in (["--help"], ["-h"]) else sys.stderr)
        return 0 if arguments[:1] in (["--help"], ["-h"]) else 1
    if any(word in ("--help", "-h") for word in arguments):
        print(USAGE)
        return 0
    return start(arguments[1:])
