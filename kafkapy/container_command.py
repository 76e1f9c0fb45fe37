"""The command `kafkapy container-start`: starts a broker that is configured by environment variables.

It is the entry point of a container, and has the rules of the image `apache/kafka`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kafkapy.config.container_environment import DEFAULT_CLUSTER_ID, completed, overridden, properties_of
from kafkapy.errors import ConfigError

USAGE = """usage: kafkapy container-start [--defaults FILE] [--mounted FILE] [--final FILE] [NAME=value ...]
                               [--override key=value ...]

Starts a broker or controller in a container, configured by environment variables as the image apache/kafka is:
KAFKA_LISTENERS is the key listeners; in the rest of a name one underscore is a dot, two are an underscore, and three
are a dash. Words NAME=value count as further variables.

The configuration file --final is written from the file --mounted, if that exists, followed by the variables; without
both the broker starts with the file --defaults. New directories are formatted with CLUSTER_ID. KAFKA_OPTS may
name a JAAS file; KAFKA_HEAP_OPTS and the other options of the JVM have no effect. KAFKA_LOG4J_ROOT_LOGLEVEL and
KAFKA_LOG4J_LOGGERS set levels of loggers."""
FILES = {
    "--defaults": "/etc/kafkapy/container.properties",
    "--mounted": "/mnt/shared/config/server.properties",
    "--final": "/var/lib/kafkapy/server.properties",
}
_LEVELS = {"TRACE": "DEBUG", "FATAL": "CRITICAL", "OFF": "CRITICAL", "ALL": "DEBUG"}


def parse_words(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Returns (paths, remaining words): the path of each file by its flag in FILES, and the words after the flags.

    A flag that `words` does not contain has its default path. Raises ConfigError for a flag without a path.
    """
    files, rest = dict(FILES), list(words)
    while rest and rest[0].partition("=")[0] in FILES:
        flag, has_value, path = rest.pop(0).partition("=")
        if not has_value:
            path = rest.pop(0) if rest else ""
        if not path:
            raise ConfigError(f"{flag} needs the path of a file")
        files[flag] = path
    return files, rest


def write_configuration(files: Mapping[str, str], properties: Mapping[str, str]) -> str:
    """Writes the configuration file of the broker and returns its path; `files` maps each flag to a path.

    The file of the flag `--final` gets the content of the file of `--mounted`, if it exists, followed by `properties`.
    If the file of `--mounted` does not exist and `properties` is empty, writes nothing and returns the path of the file
    of `--defaults`. Only the owner can read the written file, since it may have passwords; a file that belongs to
    another user keeps its permissions. Raises OSError if the file cannot be written.
    """
    mounted, final = Path(files["--mounted"]), Path(files["--final"])
    if not properties and not mounted.exists():
        return files["--defaults"]
    content = mounted.read_text("latin-1") if mounted.exists() else ""
    lines = [f"{_escaped(key)}={_escaped(value)}" for key, value in properties.items()]
    final.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(final, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="latin-1") as file:
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o600)  # the file may exist already, with other permissions
        file.write("\n".join([content, *lines, ""]))
    return str(final)


def _escaped(text: str) -> str:
    """Returns a key or value in the form for a `.properties` file: characters that are not ASCII become Unicode
    escapes.

    Backslashes in the text are not escaped, as in the container image of Apache Kafka. A reader of the file therefore
    takes them as the beginning of escape sequences. For example, a value whose line ends with a backslash continues on
    the next line.
    """
    return "".join(each if each.isascii() else _unicode_escape(each) for each in text)


def _unicode_escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def format_directories(path: str, cluster_id: str) -> int:
    """Formats the log directories in the configuration file `path` that are not formatted yet.

    Returns the exit code of `kafkapy-storage format`, 0 after a success.
    """
    from kafkapy.config import BrokerConfig
    from kafkapy.storage_command import main as run_storage

    config = BrokerConfig.load(path, {})
    quorum = (
        [] if config.static_voters else ["--standalone" if config.forms_own_cluster else "--no-initial-controllers"]
    )
    return run_storage(["format", "--ignore-formatted", "--cluster-id", cluster_id, "--config", path, *quorum])


def set_log_levels(environment: Mapping[str, str]) -> None:
    """Sets the levels of loggers: the root level KAFKA_LOG4J_ROOT_LOGLEVEL, and `name=level` pairs.

    The pairs are in KAFKA_LOG4J_LOGGERS, separated by commas. Raises ConfigError for an unknown level.
    """
    levels = dict.fromkeys(("kafka", "kafkapy"), environment.get("KAFKA_LOG4J_ROOT_LOGLEVEL", ""))
    for word in filter(None, environment.get("KAFKA_LOG4J_LOGGERS", "").split(",")):
        name, _, level = word.partition("=")
        levels[name.strip()] = level.strip()
    for name, level in levels.items():
        if level:
            try:
                logging.getLogger(name).setLevel(_LEVELS.get(level.upper(), level.upper()))
            except ValueError:
                raise ConfigError(
                    f"{level} is not the level of a logger: accepted are ERROR, WARN, INFO, ..."
                ) from None


def _read_secret(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def main(arguments: list[str]) -> int:
    """Writes the configuration, formats new directories and runs the broker until it is stopped.

    Returns the exit code.
    """
    if arguments[:1] in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    try:
        files, words = parse_words(arguments)
        environment, words = overridden(os.environ, words)
        environment = completed(environment, _read_secret)
        properties = properties_of(environment)
        path = write_configuration(files, properties)
        set_log_levels(environment)
        if path == files["--final"] and "process.roles" in properties:
            code = format_directories(path, environment.get("CLUSTER_ID") or DEFAULT_CLUSTER_ID)
            if code:
                return code
    except (ConfigError, OSError) as error:
        print(f"kafkapy container-start: {error}", file=sys.stderr)
        return 1
    from kafkapy.broker_command import main as run_broker

    return run_broker(["start", "--config", path, *words])
