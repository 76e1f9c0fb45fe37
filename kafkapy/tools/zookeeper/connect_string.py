"""Connect strings: the addresses of ZooKeeper's servers, and the path below which a client works."""

from __future__ import annotations

from kafkapy.decimal_text import is_number
from kafkapy.named_tuple import NamedTuple

ZOOKEEPER_PORT = 2181


class ConnectString(NamedTuple):
    """The servers, and the chroot: "" or a path, which the client puts before every path."""

    servers: tuple[tuple[str, int], ...]
    chroot: str


def parse_connect_string(text: str) -> ConnectString:
    """Parses `host:port,host:port/path`; the port is 2181 by default. Raises ValueError for an invalid text."""
    addresses, slash, path = text.partition("/")
    servers = tuple(_server(each.strip(), text) for each in addresses.split(",") if each.strip())
    if not servers:
        raise ValueError(f"{text!r} names no server: expected host:port[,host:port ...][/path]")
    chroot = f"/{path}" if slash and path else ""
    if chroot:
        check_path(chroot)
    return ConnectString(servers, chroot)


def _server(address: str, text: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(ZOOKEEPER_PORT)
    if not host or not (is_number(port) and 0 < int(port) < 1 << 16):
        raise ValueError(f"{address!r} in {text!r} is not host:port")
    return host.strip("[]"), int(port)


def check_path(path: str) -> None:
    """Raises ValueError, with ZooKeeper's text, for a path that ZooKeeper's client refuses."""
    if not path:
        raise ValueError("Path length must be > 0")
    if path[0] != "/":
        raise ValueError("Path must start with / character")
    if path == "/":
        return
    if path[-1] == "/":
        raise ValueError("Path must not end with / character")
    position = 1
    for name in path[1:].split("/"):
        end = position + len(name)
        if not name:
            raise ValueError(f'Invalid path string "{path}" caused by empty node name specified @{position}')
        if name in (".", ".."):
            raise ValueError(f'Invalid path string "{path}" caused by relative paths not allowed @{end - 1}')
        for index, character in enumerate(name, position):
            if character == "\0":
                raise ValueError(f'Invalid path string "{path}" caused by null character not allowed @{index}')
            if character <= "\x1f" or "\x7f" <= character <= "\x9f":
                raise ValueError(f'Invalid path string "{path}" caused by invalid character @{index}')
        position = end + 1
