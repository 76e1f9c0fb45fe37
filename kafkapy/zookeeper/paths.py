"""Paths of znodes: the rules for their names (`PathUtils` of ZooKeeper)."""

from __future__ import annotations

from kafkapy.zookeeper.errors import OperationError, ZooKeeperError

ROOT_PATH = "/"
# The nodes that ZooKeeper itself creates and that cannot be deleted.
SYSTEM_NODES = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")


def parent_of(path: str) -> str:
    """Returns the path of the parent. Raises OperationError BAD_ARGUMENTS for a path without a slash."""
    slash = path.rfind("/")
    if slash < 0 or "\0" in path:
        raise OperationError(ZooKeeperError.BAD_ARGUMENTS)
    return path[:slash] or ROOT_PATH


def name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]


def child_path(parent: str, name: str) -> str:
    return f"/{name}" if parent == ROOT_PATH else f"{parent}/{name}"


def check_path(path: str) -> None:
    """Raises OperationError BAD_ARGUMENTS for a path that ZooKeeper refuses.

    ZooKeeper refuses a path that is not absolute, and a path with a name that is empty, "." or "..". It also refuses
    control characters and some other code points.
    """
    if path == ROOT_PATH:
        return
    if not path.startswith("/") or path.endswith("/"):
        raise OperationError(ZooKeeperError.BAD_ARGUMENTS)
    if "//" in path or ("/." in path and any(name in (".", "..") for name in path.split("/"))):
        raise OperationError(ZooKeeperError.BAD_ARGUMENTS)
    if not (path.isascii() and path.isprintable()) and any(map(_is_refused, path)):
        raise OperationError(ZooKeeperError.BAD_ARGUMENTS)


def _is_refused(character: str) -> bool:
    """Returns whether a name may not have the character. Java sees a code point above U+FFFF as two surrogates, which
    are refused too."""
    return (
        character <= "\x1f"
        or "\x7f" <= character <= "\x9f"
        or "\ud800" <= character <= "\uf8ff"
        or character >= "\ufff0"
    )
