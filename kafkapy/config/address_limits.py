"""The form of `max.connections.per.ip.overrides`, the largest numbers of connections of single addresses."""

from __future__ import annotations

from kafkapy.decimal_text import is_number
from kafkapy.errors import ConfigError

OVERRIDES_KEY = "max.connections.per.ip.overrides"


def split_address_limits(text: str) -> list[tuple[str, int]]:
    """Returns each host and its limit in `text`, which has the form `host:limit,...`. Resolves no host name.

    Raises ConfigError, which names the key, for a text of another form.
    """
    limits = []
    for element in filter(None, (part.strip() for part in text.split(","))):
        host, colon, limit = element.rpartition(":")
        if not colon or not host or not is_number(limit):
            raise ConfigError(f"Invalid value {text} for configuration {OVERRIDES_KEY}: {element} is not host:limit")
        limits.append((host.strip("[]"), int(limit)))
    return limits
