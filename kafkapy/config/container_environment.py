"""A broker's configuration from environment variables, by the rules of the container image `apache/kafka`.

The functions have no side effects. `KAFKA_LISTENERS` is the key `listeners`: the prefix is removed, the rest is written
in lower case, one underscore becomes a dot, two become an underscore, and three a dash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kafkapy.errors import ConfigError

PREFIX = "KAFKA_"
# The id that the image uses without CLUSTER_ID, so that nodes of one compose file form a cluster.
DEFAULT_CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
# Variables of the image that are no configuration keys.
NO_KEYS = frozenset(
    {
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
SECRETS = "/etc/kafka/secrets"
# Variable with the name of a file in SECRETS -> the key that gets the file's path.
_LOCATIONS = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "KAFKA_SSL_KEYSTORE_LOCATION",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "KAFKA_SSL_TRUSTSTORE_LOCATION",
}
# Variable with the name of a file in SECRETS -> the key that gets the file's content.
_PASSWORDS = {
    "KAFKA_SSL_KEY_CREDENTIALS": "KAFKA_SSL_KEY_PASSWORD",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "KAFKA_SSL_KEYSTORE_PASSWORD",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "KAFKA_SSL_TRUSTSTORE_PASSWORD",
}
_OF_KEY_STORE = ("KAFKA_SSL_KEYSTORE_FILENAME", "KAFKA_SSL_KEY_CREDENTIALS", "KAFKA_SSL_KEYSTORE_CREDENTIALS")
_OF_TRUST_STORE = ("KAFKA_SSL_TRUSTSTORE_FILENAME", "KAFKA_SSL_TRUSTSTORE_CREDENTIALS")
_HOST = re.compile(r"://[^:]*:")


def key_of(variable: str) -> str:
    """Returns the configuration key of a variable: `ssl.keystore.location` for `KAFKA_SSL_KEYSTORE_LOCATION`."""
    dotted = variable.replace(PREFIX, "").lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")


def properties_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the configuration that environment variables contain, by key; empty if no variable is a key."""
    names = (name for name in environment if name.startswith(PREFIX) and name not in NO_KEYS)
    return {key_of(name): environment[name] for name in names}


def completed(environment: Mapping[str, str], read_secret: Callable[[str], str]) -> dict[str, str]:
    """Returns a copy of the environment with the variables that the image derives from others.

    KAFKA_LISTENERS is derived from KAFKA_ADVERTISED_LISTENERS, and the locations and passwords of the TLS stores from
    variables that name files in SECRETS. `read_secret(path)` returns the content of a file. Raises ConfigError if a
    variable that a TLS listener needs is not set, or if a controller has KAFKA_ADVERTISED_LISTENERS.
    """
    found = dict(environment)
    advertised = found.get("KAFKA_ADVERTISED_LISTENERS", "")
    if found.get("KAFKA_PROCESS_ROLES") == "controller":
        if advertised:
            raise ConfigError("KAFKA_ADVERTISED_LISTENERS is not supported on a KRaft controller.")
    elif advertised and not found.get("KAFKA_LISTENERS"):
        found["KAFKA_LISTENERS"] = _HOST.sub("://0.0.0.0:", advertised)
    if "SSL://" in advertised:
        wanted = list(_OF_KEY_STORE)
        if found.get("KAFKA_SSL_CLIENT_AUTH") in ("required", "requested"):
            wanted += _OF_TRUST_STORE
        for name in wanted:
            if not found.get(name) and not found.get(_LOCATIONS.get(name) or _PASSWORDS[name]):
                raise ConfigError(f"{name} is not set, and a listener of KAFKA_ADVERTISED_LISTENERS uses TLS")
    for name, target in _LOCATIONS.items():
        if found.get(name):
            found[target] = f"{SECRETS}/{found.pop(name)}"
    for name, target in _PASSWORDS.items():
        if found.get(name):
            found[target] = read_secret(f"{SECRETS}/{found.pop(name)}").strip("\r\n")
    return found


def overridden(environment: Mapping[str, str], words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Moves the leading elements `NAME=value` of `words`, the container's command, into the environment.

    Returns a copy of the environment with these variables, and the remaining words.
    """
    found, rest = dict(environment), list(words)
    while rest and re.match(r"[A-Z][A-Z0-9_]*=", rest[0]):
        name, _, value = rest.pop(0).partition("=")
        found[name] = value
    return found, rest
