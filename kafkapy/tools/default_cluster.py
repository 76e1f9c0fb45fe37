"""The cluster of a command line that names none: from the environment, or from a profile of the user.

The first of these sources that is set counts:

1. `bootstrap.servers` in the configuration file that the command line names;
2. the profile that `kafkapy --profile NAME` or $KAFKAPY_PROFILE names;
3. $KAFKAPY_BOOTSTRAP_SERVERS;
4. the profile `default`, if there is one.

A profile is a client's configuration file, `kafkapy/profiles/NAME.properties` below $XDG_CONFIG_HOME or ~/.config.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkapy.config.properties import CONTROL_CHARACTER, read_content, read_properties
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.bootstrap import ZOOKEEPER, ZOOKEEPER_AND_SERVERS
from kafkapy.tools.option import Option, ToolError, UsageError

if TYPE_CHECKING:
    from kafkapy.config.row import Row

SERVERS_VARIABLE = "KAFKAPY_BOOTSTRAP_SERVERS"
PROFILE_VARIABLE = "KAFKAPY_PROFILE"
DEFAULT_PROFILE = "default"
# The first of these flags that a tool has names its cluster; in a tool with both flags, --broker-list takes broker ids.
_SERVERS_FLAGS = ("bootstrap-server", "broker-list")
_SERVERS_KEY = "bootstrap.servers"
# Flags whose value is a file with a client's configuration.
_CONFIG_FLAGS = (
    *("command-config", "consumer.config", "consumer-config", "producer.config", "admin.config", "config-file"),
    "config",
)
# Flags that name a source other than brokers.
_OTHER_SOURCES = ("bootstrap-controller", "directory", "zookeeper")
# Flags whose values are keys of a client's configuration.
_PROPERTY_FLAGS = ("command-property", "producer-props", "producer-property", "consumer-property")
_READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH

Found = dict[str, list[Any]]


class Profile(NamedTuple):
    """A profile: the path of its file, and the configuration in the file."""

    path: Path
    properties: dict[str, str]


def fill_in(
    options: Sequence[Option], environment: Mapping[str, str] = os.environ, *, accepts_profile: bool = True
) -> Callable[[Found], None]:
    """Returns a function that adds the flags of the default cluster to the flags that a parser has found.

    The default cluster is the one that the environment or a profile of the user names (see the module). The function
    adds nothing if the tool does not connect to a cluster, or if the command line names a cluster or asks for help. If
    the command line has --zookeeper, the function adds the brokers that are registered in ZooKeeper. From a profile, it
    adds the servers, and the profile's file as the client's configuration file. If `accepts_profile` is False, it adds
    only the servers, and ignores the other settings of the profile.

    The function raises ToolError for servers that are not a list of addresses, for a profile that does not exist or is
    damaged, and for a profile that sets more than the servers if `accepts_profile` is set and the tool has no flag for
    a configuration file. It raises UsageError if the command line has --zookeeper and servers, and the tool accepts
    only one of the two.
    """
    by_name = {option.name: option for option in options}
    flag = next((by_name[name] for name in _SERVERS_FLAGS if name in by_name), None)
    zookeeper = by_name.get("zookeeper")
    config_flags = [name for name in _CONFIG_FLAGS if name in by_name and by_name[name].completes == "file"]

    def fill(found: Found) -> None:
        if flag is not None and zookeeper in (ZOOKEEPER, ZOOKEEPER_AND_SERVERS) and found.get("zookeeper"):
            if flag.name not in found and "help" not in found:
                found[flag.name] = [_servers_in_zookeeper(found, config_flags)]
            elif zookeeper is ZOOKEEPER and "help" not in found:
                raise UsageError(f"Only one of {flag.flag} or --zookeeper must be specified")
            return
        if flag is None or not flag.has_default_cluster or flag.name in found or _needs_no_default(found):
            return
        given = [name for name in config_flags if found.get(name)]
        servers = _servers_of_file(found[given[0]][-1]) if given else None
        if servers is None and not environment.get(PROFILE_VARIABLE):
            servers = environment.get(SERVERS_VARIABLE) or None
            if servers is not None:
                _check_servers(servers, f"${SERVERS_VARIABLE}")
        if servers is not None:
            found[flag.name] = [servers]
            return
        profile = chosen_profile(environment)
        if profile is None:
            return
        servers = profile.properties[_SERVERS_KEY]
        _check_servers(servers, f"{_SERVERS_KEY} in the profile {profile.path}")
        found[flag.name] = [servers]
        if accepts_profile and not given and len(profile.properties) > 1:
            if not config_flags:
                raise ToolError(
                    f"this tool cannot use the profile {profile.path}, which sets more than {_SERVERS_KEY}: "
                    "the tool has no flag for a configuration file"
                )
            current = [name for name in config_flags if not by_name[name].is_deprecated]
            found[(current or config_flags)[0]] = [str(profile.path)]

    return fill


def _needs_no_default(found: Found) -> bool:
    """Returns whether the default cluster is not needed: the flags ask for help or the version, or name another source.

    Such a source is a controller, a directory or ZooKeeper, or `bootstrap.servers` in a flag for single properties.
    """
    if any(name in found for name in ("help", "version", *_OTHER_SOURCES)):
        return True
    properties = (word for name in _PROPERTY_FLAGS for word in found.get(name, ()))
    return any(word.partition("=")[0].strip() == _SERVERS_KEY for word in properties)


def _servers_in_zookeeper(found: Found, config_flags: Sequence[str]) -> str:
    """Returns the addresses of the brokers that are registered in the ZooKeeper that --zookeeper names.

    Each broker may have several listeners; the addresses are those of the listeners with the client's
    security.protocol. This protocol is read from the client's configuration file, which is the value of the first flag
    in `config_flags` that was given. The default is PLAINTEXT. Raises ToolError if ZooKeeper cannot be reached, or if
    no broker with a listener of this protocol is registered.
    """
    from kafkapy.tools.zookeeper.brokers import servers_in_zookeeper  # seldom needed

    paths = [found[name][-1] for name in config_flags if found.get(name)]
    protocol = (read_properties(paths[0]).get("security.protocol") if paths else None) or "PLAINTEXT"
    return servers_in_zookeeper(str(found["zookeeper"][-1]), protocol.upper())


def _check_servers(servers: str, source: str) -> None:
    """Raises ToolError unless `servers` is a list of addresses; `source` says in the message where they come from."""
    from kafkapy.client.cluster import parse_addresses  # the source is seldom the environment

    try:
        parse_addresses([each.strip() for each in servers.split(",")])
    except ConfigError as error:
        raise ToolError(f"{source} is {servers}: {error}") from None


def _servers_of_file(path: str) -> str | None:
    """Returns bootstrap.servers of a configuration file; None if the file does not set the key or cannot be read.

    The tool itself reports a file that cannot be read.
    """
    try:
        return read_properties(path).get(_SERVERS_KEY) or None
    except ConfigError:
        return None


def chosen_profile(environment: Mapping[str, str] = os.environ) -> Profile | None:
    """Returns the profile that $KAFKAPY_PROFILE names or, if the variable is not set, the profile `default`.

    Returns None if the variable is not set and there is no profile `default`. Raises ToolError if the profile that the
    variable names does not exist, or if the profile cannot be used.
    """
    directory, name = profile_directory(environment), environment.get(PROFILE_VARIABLE) or ""
    path = directory / f"{name or DEFAULT_PROFILE}.properties"
    if "/" in name or not name.isprintable():
        raise ToolError(f"{name!r} is not the name of a profile: profiles are files in {directory}")
    if path.exists():
        return Profile(path, _read(path))
    if not name:
        return None
    known = profile_names(environment)
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]}?" if near else f" (profiles: {', '.join(known) or 'none'})"
    raise ToolError(f"there is no profile {name}: {path} does not exist{hint}")


def profile_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of the user's profiles, which may not exist."""
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME") or "~", ".config")
    return Path(base).expanduser() / "kafkapy" / "profiles"


def profile_names(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Returns the names of the user's profiles, sorted."""
    return sorted(path.stem for path in profile_directory(environment).glob("*.properties"))


def _read(path: Path) -> dict[str, str]:
    """Returns the configuration in a profile.

    Raises ToolError if the file is damaged, or if it contains a password and other users can read it.
    """
    from kafkapy.config.client_table import ADMIN_ROWS, CONSUMER_ROWS, PRODUCER_ROWS

    try:
        content = read_content(str(path))
        control = CONTROL_CHARACTER.search(content)
        if control is not None:
            line = content.count(b"\n", 0, control.start()) + 1
            what = f"line {line} contains the control character 0x{control[0][0]:02x}"
            raise ToolError(f"the profile {path} is damaged: {what}")
        properties = read_properties(str(path))
    except ConfigError as error:
        raise ToolError(f"the profile {path} cannot be used: {error}") from None
    if not properties.get(_SERVERS_KEY):
        raise ToolError(f"the profile {path} is damaged: it does not set {_SERVERS_KEY}")
    rows = {**ADMIN_ROWS, **CONSUMER_ROWS, **PRODUCER_ROWS}
    secret = next((name for name, value in properties.items() if value and _is_secret(name, rows)), None)
    if secret is not None and path.stat().st_mode & _READABLE_BY_OTHERS:
        raise ToolError(f"the profile {path} contains {secret} and other users can read it: run chmod 600 {path}")
    return properties


def _is_secret(name: str, rows: Mapping[str, Row]) -> bool:
    return name in rows and rows[name].sensitive and "certificate" not in name  # certificates are public
