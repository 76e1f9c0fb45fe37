"""The names that completion takes from the running broker: topics and groups.

A shell calls `kafkapy completion names KIND -- WORDS...` with the words of the command line that the user types. The
names are read from the brokers that these words name, otherwise from the default cluster.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from kafkapy.client.admin import Admin
from kafkapy.errors import KafkapyError
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.default_cluster import PROFILE_VARIABLE, fill_in
from kafkapy.tools.option import Option, ToolError

ANSWER_S = 2.0
# bash expands the words that it offers, so that names with characters of its own must not reach it.
_PLAIN = re.compile(r"[A-Za-z0-9._@/+-]+")
_SERVERS_FLAGS = ("--bootstrap-server", "--broker-list", "-b")
_CONFIG_FLAGS = ("--command-config",)
_OPTIONS = (
    Option("bootstrap-server", "", "servers"),
    Option("command-config", "", "file", completes="file"),
)


def print_names(arguments: Sequence[str]) -> int:
    """Prints the names of topics or groups, one in each line; returns the exit code.

    `arguments` are "topic" or "group", "--", and the words of the command line that the user types. The flags among
    these words name the cluster. Prints nothing and returns 1 if no broker answers soon, because a message would
    disturb the user.
    """
    kind, words = (arguments[0] if arguments else ""), arguments[2:]
    if kind not in ("topic", "group") or arguments[1:2] != ["--"]:
        print("usage: kafkapy completion names topic|group -- WORD...", file=sys.stderr)
        return 1
    try:
        names = read_names(kind, client_properties(words))
    except (KafkapyError, ToolError, OSError):
        return 1
    for name in sorted(filter(_PLAIN.fullmatch, names)):
        print(name)
    return 0


def client_properties(words: Sequence[str]) -> dict[str, str]:
    """Returns the configuration of a client from the words of a command line and the default cluster.

    A flag's value may be in `--flag=value`, in the next word, or after a word "=", because bash divides `--flag=value`
    into three words. Raises ToolError if no brokers are named, or for a profile that cannot be used.
    """
    from kafkapy.config.properties import read_properties

    plain = [word for word in words if word != "="]
    environment = dict(os.environ)
    found: dict[str, list[str]] = {}
    for index, word in enumerate(plain):
        flag, has_value, value = word.partition("=")
        if not has_value:
            value = plain[index + 1] if index + 1 < len(plain) else ""
        name = "bootstrap-server" if flag in _SERVERS_FLAGS else "command-config" if flag in _CONFIG_FLAGS else ""
        if name and value:
            found[name] = [value]
        if flag == "--profile" and value:
            environment[PROFILE_VARIABLE] = value
    fill_in(_OPTIONS, environment)(found)
    if "bootstrap-server" not in found:
        raise ToolError("no brokers are named")
    properties = read_properties(found["command-config"][0]) if "command-config" in found else {}
    return {**properties, "bootstrap.servers": found["bootstrap-server"][0]}


def read_names(kind: str, properties: dict[str, str]) -> list[str]:
    """Returns the names of all topics (`kind` is "topic") or groups ("group") of the cluster.

    Raises ToolError, ApiError or TimeoutError if no broker answers within ANSWER_S seconds.
    """
    await_broker(properties, 0.0)
    with Admin({**properties, "default.api.timeout.ms": str(int(ANSWER_S * 1000))}) as admin:
        if kind == "topic":
            return list(admin.list_topics(timeout=ANSWER_S))
        return [group.group_id for group in admin.list_groups(timeout=ANSWER_S)]
