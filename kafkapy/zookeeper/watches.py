"""The watches of connected clients: one-shot, persistent and recursive (`WatchManager` of ZooKeeper)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum, IntFlag
from typing import Generic, TypeVar

from kafkapy.named_tuple import NamedTuple
from kafkapy.zookeeper.acl import Acl
from kafkapy.zookeeper.paths import ROOT_PATH, parent_of

W = TypeVar("W")


class EventType(IntEnum):
    """The types of watch events, as in the protocol."""

    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4


class WatchEvent(NamedTuple):
    """A change of the node at `path`, which had the ACL `acl`; only clients that may read the node are notified."""

    type: EventType
    path: str
    acl: Acl


class WatchMode(IntFlag):
    """The modes of a watch: it ends with its first event, it lasts, or it lasts and includes all descendants.

    The values are bits: a client may have watches of several modes for one path.
    """

    ONE_SHOT = 1
    PERSISTENT = 2
    RECURSIVE = 4


_ALL_MODES = WatchMode.ONE_SHOT | WatchMode.PERSISTENT | WatchMode.RECURSIVE


class WatchKind(IntEnum):
    """The kinds of watches in the requests checkWatches and removeWatches. CHILDREN and DATA are one-shot watches."""

    CHILDREN = 1
    DATA = 2
    ANY = 3
    PERSISTENT = 4
    RECURSIVE = 5


# Kind -> the modes that it names in the table of data and in the table of children.
_KINDS: dict[WatchKind, tuple[int, int]] = {
    WatchKind.CHILDREN: (0, WatchMode.ONE_SHOT),
    WatchKind.DATA: (WatchMode.ONE_SHOT, 0),
    WatchKind.ANY: (_ALL_MODES, _ALL_MODES),
    WatchKind.PERSISTENT: (WatchMode.PERSISTENT, WatchMode.PERSISTENT),
    WatchKind.RECURSIVE: (WatchMode.RECURSIVE, 0),
}


class _Table(Generic[W]):
    """A table of watches: for each path and watcher the modes of its watches, as bits of WatchMode."""

    def __init__(self) -> None:
        self.count = 0  # pairs of a path and a watcher
        self.by_path: dict[str, dict[W, int]] = {}
        self.by_watcher: dict[W, set[str]] = {}

    def add(self, path: str, watcher: W, mode: int) -> None:
        watchers = self.by_path.setdefault(path, {})
        self.count += watcher not in watchers
        watchers[watcher] = watchers.get(watcher, 0) | mode
        self.by_watcher.setdefault(watcher, set()).add(path)

    def has(self, path: str, watcher: W, modes: int) -> bool:
        return bool(self.by_path.get(path, {}).get(watcher, 0) & modes)

    def remove(self, path: str, watcher: W, modes: int) -> bool:
        """Removes the watches of `path` that the watcher has in one of `modes`, a sum of bits of WatchMode.

        Returns True if it has removed a watch, and False if there was none.
        """
        watchers = self.by_path.get(path, {})
        present = watchers.get(watcher, 0)
        if not present & modes:
            return False
        if present & ~modes:
            watchers[watcher] = present & ~modes
            return True
        del watchers[watcher]
        self.count -= 1
        if not watchers:
            del self.by_path[path]
        paths = self.by_watcher[watcher]
        paths.discard(path)
        if not paths:
            del self.by_watcher[watcher]
        return True

    def remove_watcher(self, watcher: W) -> None:
        for path in list(self.by_watcher.get(watcher, ())):
            self.remove(path, watcher, _ALL_MODES)

    def take(self, path: str) -> list[W]:
        """Returns the clients with a watch of the node at `path`, and removes the watches that are one-shot."""
        watchers = self.by_path.get(path)
        if watchers is None:
            return []
        found = list(watchers)
        for watcher in found:
            self.remove(path, watcher, WatchMode.ONE_SHOT)
        return found

    def recursive_above(self, path: str) -> Iterator[W]:
        """Yields the clients that have a recursive watch of an ancestor of `path`."""
        while path != ROOT_PATH:
            path = parent_of(path)
            for watcher, modes in self.by_path.get(path, {}).items():
                if modes & WatchMode.RECURSIVE:
                    yield watcher


class Watches(Generic[W]):
    """All watches of all clients. `W` identifies a client.

    Watches of data (of getData and exists) and of children are in separate tables. A recursive watch is in the table of
    data.
    """

    def __init__(self) -> None:
        self._data: _Table[W] = _Table()
        self._children: _Table[W] = _Table()
        self.recursive_count = 0

    def __len__(self) -> int:
        return self._data.count + self._children.count

    @property
    def path_count(self) -> int:
        return len({*self._data.by_path, *self._children.by_path})

    @property
    def watcher_count(self) -> int:
        return len({*self._data.by_watcher, *self._children.by_watcher})

    def watch_data(self, path: str, watcher: W) -> None:
        self._data.add(path, watcher, WatchMode.ONE_SHOT)

    def watch_children(self, path: str, watcher: W) -> None:
        self._children.add(path, watcher, WatchMode.ONE_SHOT)

    def watch_persistently(self, path: str, watcher: W, mode: WatchMode) -> None:
        self._data.add(path, watcher, mode)
        if mode is WatchMode.RECURSIVE:
            self.recursive_count += 1  # a hint that is never lowered: without it, triggers skip the nodes above
        else:
            self._children.add(path, watcher, mode)

    def has(self, path: str, watcher: W, kind: WatchKind) -> bool:
        data, children = _KINDS[kind]
        return self._data.has(path, watcher, data) or self._children.has(path, watcher, children)

    def remove(self, path: str, watcher: W, kind: WatchKind) -> bool:
        """Removes a client's watches of `path` that belong to the kind; returns False if there are none."""
        data, children = _KINDS[kind]
        in_data = self._data.remove(path, watcher, data)
        return self._children.remove(path, watcher, children) or in_data

    def remove_watcher(self, watcher: W) -> None:
        """Removes all watches of a client that has disconnected."""
        self._data.remove_watcher(watcher)
        self._children.remove_watcher(watcher)

    def trigger(self, event: WatchEvent) -> list[W]:
        """Returns the clients to notify of the event, each once, and removes their one-shot watches for it."""
        path = event.path
        if event.type is EventType.NODE_CHILDREN_CHANGED:
            table = self._children
            return table.take(path) if path in table.by_path else []
        found = self._data.take(path)
        if event.type is EventType.NODE_DELETED:
            found += self._children.take(path)
        if self.recursive_count:
            found += self._data.recursive_above(path)
        return list(dict.fromkeys(found)) if len(found) > 1 else found
