"""The parts that the verifiable consumers and the verifiable producer have in common: flags and the run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from kafkapy.client import WakeupError
from kafkapy.config.properties import read_properties
from kafkapy.errors import KafkapyError
from kafkapy.tools.json_events import print_event
from kafkapy.tools.option import Arguments, Option, UsageError
from kafkapy.tools.tool import Termination, stops_by

log = logging.getLogger("kafkapy.tools.verifiable_consumer")

COMMAND_CONFIG = Option(
    "command-config",
    "Config properties file (config options shared with command line parameters will be overridden).",
    "CONFIG-FILE",
    completes="file",
)


class Closeable(Protocol):
    """A client that can be closed."""

    def close(self) -> None:
        """Closes the client."""


def bootstrap_option(description: str, **fields: Any) -> Option:
    """Returns the flag --bootstrap-server; `description` is its help text, `fields` are other fields of its Option."""
    return Option("bootstrap-server", description, "HOST1:PORT1[,HOST2:PORT2[...]]", **fields)


def read_configuration(arguments: Arguments, deprecated: str) -> dict[str, Any]:
    """Returns the configuration in the file that --command-config or the flag `deprecated` names; {} without a file.

    Prints a warning if the deprecated flag is given. Raises UsageError if both are given.
    """
    if arguments.has(deprecated) and arguments.has("command-config"):
        raise UsageError(f"Options --{deprecated} and --command-config are mutually exclusive.")
    if arguments.has(deprecated):
        print(
            f"Option --{deprecated} has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
    path = arguments[deprecated] or arguments["command-config"]
    return {} if path is None else read_properties(path)


def run_consumer(what: str, consumer: Closeable, stop: Callable[[], None], work: Callable[[], None]) -> None:
    """Calls `work`, which reads with the consumer, and closes the consumer when `work` has ended.

    Prints the event startup_complete before the call of `work`, and shutdown_complete after the consumer was closed. A
    KafkapyError that `work` raises is logged with the name `what` of the consumer, and is not raised here. A signal
    calls `stop`, which must make `work` return or raise WakeupError. If a signal has arrived, raises Termination at the
    end.
    """
    with stops_by(stop) as signals:
        print_event("startup_complete")
        try:
            work()
        except WakeupError:
            log.debug("The %s is stopped", what)
        except KafkapyError as error:
            log.error("Error during processing, terminating %s process: %s", what, error)
        finally:
            consumer.close()
            print_event("shutdown_complete")
    if signals:
        raise Termination(signals[0])
