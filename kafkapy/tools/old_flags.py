"""The flags of Apache Kafka 0.8 to 3.x that its tools no longer have, and their translation into present flags.

`--zookeeper` is not among them: the tools accept it (`bootstrap.ZOOKEEPER`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from kafkapy.named_tuple import NamedTuple

Rewrite = Callable[[str], list[str]]
_CODECS = {"0": "none", "1": "gzip", "2": "snappy", "3": "lz4", "4": "zstd"}


class OldFlag(NamedTuple):
    """A flag of older releases.

    takes_value: whether a value follows the flag.
    instead: the flag to use today, which is named in the warning about the old flag; "" if there is none.
    rewrite: the function that returns the present flags and their values, as words of a command line, for the old
        flag's value; None if the old flag is ignored.
    """

    takes_value: bool
    instead: str = ""
    rewrite: Rewrite | None = None


def _renamed(name: str) -> OldFlag:
    """Returns an old flag that takes a value and is called `name` today."""
    return OldFlag(True, f"--{name}", lambda value: [f"--{name}", value])


def _property(key: str, flag: str = "command-property", values: Mapping[str, str] | None = None) -> OldFlag:
    """Returns an old flag that is written today as `--<flag> <key>=VALUE`, with the old flag's value as VALUE.

    `values` maps old values to the present ones; other values do not change.
    """
    known = values or {}
    return OldFlag(True, f"--{flag} {key}=VALUE", lambda value: [f"--{flag}", f"{key}={known.get(value, value)}"])


def _all_but(value: str) -> list[str]:
    """Returns --include with a regular expression for all topics except those that match `value`.

    `value` is the value of an old flag such as --blacklist, in which commas separate regular expressions.
    """
    return ["--include", f"(?!(?:{value.replace(',', '|')})$).*"]


def _zookeeper_of_authorizer(value: str) -> list[str]:
    """Returns the flag --zookeeper with an address for the property `zookeeper.connect=ADDRESS`; [] for other
    properties.

    `value` is a property `key=value` of the authorizer of older releases, which stored its ACLs in ZooKeeper. Other
    keys have no meaning today.
    """
    key, _, address = value.partition("=")
    return ["--zookeeper", address] if key.strip() == "zookeeper.connect" else []


_SWITCH = OldFlag(False)
_VALUE = OldFlag(True)
_METRICS = OldFlag(False, "kafkapy metrics")

# The old flags of each tool, by their names without dashes.
OLD_FLAGS: dict[str, dict[str, OldFlag]] = {
    "console-producer": {
        "broker-list": _renamed("bootstrap-server"),
        "queue-size": OldFlag(True, "--max-memory-bytes"),
        "queue-enqueuetimeout-ms": _renamed("max-block-ms"),
        "key-serializer": _VALUE,
        "value-serializer": _VALUE,
        "old-producer": _SWITCH,
        "new-producer": _SWITCH,
    },
    "console-consumer": {
        "whitelist": _renamed("include"),
        "blacklist": OldFlag(True, "--include with an expression such as '(?!name$).*'", _all_but),
        "new-consumer": _SWITCH,
        "csv-reporter-enabled": _METRICS,
        "metrics-dir": OldFlag(True, "kafkapy metrics"),
        "delete-consumer-offsets": OldFlag(False, "kafkapy consumer-groups --delete --group GROUP"),
        "consumer-timeout-ms": _renamed("timeout-ms"),
        "autocommit.interval.ms": _property("auto.commit.interval.ms"),
        "fetch-size": _property("max.partition.fetch.bytes"),
        "min-fetch-bytes": _property("fetch.min.bytes"),
        "max-wait-ms": _property("fetch.max.wait.ms"),
        "socket-buffer-size": _property("receive.buffer.bytes"),
        "socket-timeout-ms": _property("request.timeout.ms"),
        "refresh-leader-backoff-ms": _property("retry.backoff.ms"),
    },
    "consumer-groups": {"new-consumer": _SWITCH},
    "topics": {"force": _SWITCH, "disable-rack-aware": _SWITCH},
    "configs": {"force": _SWITCH},
    "acls": {
        "authorizer": OldFlag(True, "--bootstrap-server"),
        "authorizer-properties": OldFlag(True, "--bootstrap-server or --zookeeper", _zookeeper_of_authorizer),
    },
    "get-offsets": {"max-wait-ms": _VALUE},
    "producer-perf-test": {
        "broker-list": _renamed("bootstrap-server"),
        "topics": _renamed("topic"),
        "messages": _renamed("num-records"),
        "message-size": _renamed("record-size"),
        "request-num-acks": _property("acks"),
        "compression-codec": _property("compression.type", values=_CODECS),
        "request-timeout-ms": _property("request.timeout.ms"),
        "producer-num-retries": _property("retries"),
        "producer-retry-backoff-ms": _property("retry.backoff.ms"),
        "batch-size": OldFlag(True, "--command-property batch.size=BYTES"),
        "threads": _VALUE,
        "initial-message-id": _VALUE,
        "message-send-gap-ms": OldFlag(True, "--throughput"),
        "metrics-dir": OldFlag(True, "kafkapy metrics"),
        "date-format": _VALUE,
        "csv-reporter-enabled": _METRICS,
        "hide-header": _SWITCH,
        "new-producer": _SWITCH,
        "show-detailed-stats": OldFlag(False, "--reporting-interval"),
        "sync": OldFlag(False, "--command-property max.in.flight.requests.per.connection=1"),
        "vary-message-size": _SWITCH,
    },
    "consumer-perf-test": {
        "broker-list": _renamed("bootstrap-server"),
        "threads": _VALUE,
        "num-fetch-threads": _VALUE,
        "new-consumer": _SWITCH,
    },
    "replica-verification": {"topic-white-list": _renamed("topics-include")},
    "streams-application-reset": {
        "bootstrap-servers": _renamed("bootstrap-server"),
        "execute": _SWITCH,
    },
}
# By tool: flags that are required today and did not exist before, with the value that has the old behaviour.
_FORMER_DEFAULTS = {"producer-perf-test": {"--throughput": "-1"}}


def translate(tool: str, words: Sequence[str]) -> list[str]:
    """Returns the command line with today's flags instead of those of older releases.

    If there is an old flag, also adds flags that are required only today. Prints a line to standard error for each old
    flag.
    """
    flags = OLD_FLAGS.get(tool, {})
    translated: list[str] = []
    rest = list(reversed(words))
    has_old = False
    while rest:
        word = rest.pop()
        name, has_value, value = word.removeprefix("--").partition("=")
        flag = flags.get(name) if word.startswith("--") else None
        if flag is None:
            translated.append(word)
            continue
        has_old = True
        if flag.takes_value and not has_value:
            value = rest.pop() if rest else ""
        print(_line(name, flag), file=sys.stderr)
        if flag.rewrite is not None:
            translated += flag.rewrite(value)
    if has_old:
        for required, former in _FORMER_DEFAULTS.get(tool, {}).items():
            if not any(word.partition("=")[0] == required for word in translated):
                translated += [required, former]
    return translated


def _line(name: str, flag: OldFlag) -> str:
    """Returns the warning that is printed for an old flag. The user gave the flag as `name`."""
    if flag.rewrite is not None:
        return f"--{name} is a flag of older releases; today's is {flag.instead}."
    if flag.instead:
        return f"--{name} is a flag of older releases and is ignored; use {flag.instead}."
    return f"--{name} is a flag of older releases and is ignored."
