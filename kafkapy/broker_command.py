"""`kafkapy broker start`: arguments, logging and signals around one `Broker`."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import FrameType

from kafkapy.errors import ApiError, ConfigError, StorageError

USAGE = """usage: kafkapy broker start [--config server.properties] [--override key=value ...]

Without --config the broker listens on localhost:9092 and keeps its data under the user's data folder.
A configuration file of Apache Kafka works as it is; --override (repeatable) beats the file."""

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
    except UsageError as error:
        print(f"kafkapy broker start: {error}\n\n{USAGE}", file=sys.stderr)
        return 1
    except (ConfigError, OSError) as error:
        print(f"kafkapy broker start: {sentence(error)}", file=sys.stderr)
        return 1
    set_up_logging()
    stopping = threading.Event()

    def request_stop(signal_number: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    broker = Broker(config, on_fatal=stopping.set)
    try:
        broker.start()
    except (ConfigError, StorageError, ApiError, OSError) as error:
        broker.abort()
        print(f"kafkapy broker start: {sentence(error)}", file=sys.stderr)
        return 1
    print(broker.ready_line(), flush=True)
    stopping.wait()
    return broker.stop()


def main(arguments: list[str]) -> int:
    if arguments[:1] != ["start"]:
        print(USAGE, file=sys.stdout if arguments[:1] in (["--help"], ["-h"]) else sys.stderr)
        return 0 if arguments[:1] in (["--help"], ["-h"]) else 1
    if any(word in ("--help", "-h") for word in arguments):
        print(USAGE)
        return 0
    return start(arguments[1:])
