"""The command line and the configuration of a program with an HTTP interface to a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from kafkapy.config.client_table import ADMIN_ROWS, CONSUMER_ROWS, PRODUCER_ROWS
from kafkapy.config.properties import read_properties
from kafkapy.decimal_text import is_number
from kafkapy.errors import ConfigError
from kafkapy.http import settings
from kafkapy.tools.option import Arguments, Option, ToolError

SERVERS = "bootstrap.servers"


def options(default_listener: str, origin: str) -> tuple[Option, ...]:
    """Returns the command-line options of a program with an HTTP interface.

    `default_listener` is the default of `--listener`. The text of `--help` contains `origin`, the name of the program
    whose configuration keys are accepted.
    """
    return (
        Option("bootstrap-server", "The brokers to connect to first, as HOST1:PORT1,HOST2:PORT2.", "server"),
        Option("config", f"A file with keys of {origin}, one key=value per line.", "file", completes="file"),
        Option(
            "listener",
            f"The address to listen on, as http://HOST:PORT or https://HOST:PORT; by default {default_listener}.",
            "url",
        ),
        Option("property", "A key of the configuration, as key=value. May be given several times.", "key=value"),
    )


class Configuration:
    """The configuration of a program, from a file and the command line. Raises ConfigError for an unknown key.

    defaults: the program's own keys and their default values.
    prefixes: the prefixes of the keys of its clients, such as `kafkastore.`. If one prefix begins with another one, a
        key with the longer prefix does not count as a key with the shorter prefix.
    old_names: the present name of a key by its older name; older names are accepted too.
    """

    def __init__(
        self,
        arguments: Arguments,
        defaults: Mapping[str, str],
        prefixes: Iterable[str],
        old_names: Mapping[str, str] | None = None,
    ) -> None:
        given = read_properties(arguments["config"]) if arguments.has("config") else {}
        self._prefixes = tuple(prefixes)
        self._defaults = defaults
        for each in arguments.values("property"):
            key, separator, value = each.partition("=")
            if not separator:
                raise ToolError(f"--property {each}: key=value is expected")
            given[key.strip()] = value.strip()
        if arguments.has("listener"):
            given[settings.LISTENERS_KEY] = arguments["listener"]
        if arguments["bootstrap-server"] is not None:
            given[f"{self._prefixes[0]}{SERVERS}"] = arguments["bootstrap-server"]
        for old, new in (old_names or {}).items():
            if old in given:
                given.setdefault(new, given.pop(old))
        self._check(given)
        self._given = given
        self.values = {**defaults, **given}

    def _check(self, given: Mapping[str, str]) -> None:
        rows = (*ADMIN_ROWS, *CONSUMER_ROWS, *PRODUCER_ROWS)
        known = {*self._defaults, *settings.KEYS, SERVERS, *(f"{each}{row}" for each in self._prefixes for row in rows)}
        for key in given:
            if key not in known and not key.startswith(settings.SSL_PREFIX):
                near = get_close_matches(key, known, 1)
                raise ConfigError(
                    f"The configuration key {key} is unknown" + (f"; did you mean {near[0]}?" if near else "")
                )

    def number(self, key: str) -> int:
        """Returns the value of a key as a whole number. Raises ConfigError unless the number is at least 1."""
        text = self.values[key]
        if not (is_number(text) and int(text) > 0):
            raise ConfigError(f"Invalid value {text} for configuration {key}: a whole number from 1 is accepted")
        return int(text)

    def of_clients(self, *prefixes: str) -> dict[str, str]:
        """Returns the configuration of a client: the keys that begin with one of the prefixes, without the prefix.

        If a key is given with several prefixes, the value with the last of `prefixes` counts. `bootstrap.servers`
        without a prefix is included; its default is localhost:9092.
        """
        found: dict[str, str] = {}
        if SERVERS in self._given:
            found[SERVERS] = self._given[SERVERS]
        for prefix in prefixes:
            for key, value in self._given.items():
                name = key.removeprefix(prefix)
                if name != key and key not in self._defaults and not name.startswith(_longer(prefix, self._prefixes)):
                    found[name] = value
        servers = found.get(SERVERS, "localhost:9092").split(",")
        found[SERVERS] = ",".join(each.strip().rpartition("://")[2] for each in servers)
        return found


def _longer(prefix: str, prefixes: Iterable[str]) -> tuple[str, ...]:
    """Returns the elements of `prefixes` that are longer than `prefix` and begin with it, without `prefix`."""
    return tuple(each.removeprefix(prefix) for each in prefixes if each != prefix and each.startswith(prefix))
