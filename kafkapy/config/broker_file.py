"""A broker's configuration file, refused if it is binary or belongs to another program."""

from __future__ import annotations

from kafkapy.config.properties import CONTROL_CHARACTER, parse_properties, read_content
from kafkapy.config.startup_rules import is_known
from kafkapy.errors import ConfigError


def read_broker_file(path: str) -> dict[str, str]:
    """Returns the keys and values of the file.

    Raises ConfigError if the file cannot be read, holds control characters, or has keys of which none is known.
    """
    content = read_content(path)
    found = CONTROL_CHARACTER.search(content)
    if found is not None:
        line = content.count(b"\n", 0, found.start()) + 1
        raise ConfigError(
            f"{path} is not a configuration file: line {line} holds the control character 0x{found[0][0]:02x}"
        )
    properties = parse_properties(content.decode("latin-1"))
    if properties and not any(map(is_known, properties)):
        raise ConfigError(
            f"{path} is not a broker's configuration file: it has no key that a broker knows; its first key is "
            f"{next(iter(properties))!r}"
        )
    return properties
