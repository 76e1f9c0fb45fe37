"""The servers of the comparison: a broker with `zookeeper.listener`, and Apache ZooKeeper with and without syncing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from bench.security import PLAIN, Security
from bench.servers import START_TIMEOUT_S, Kafkapy, Server
from bench.zookeeper.client import HOST, Session, get_data
from tests.ports import free_port
from tests.zookeeper.real_zookeeper import RealZooKeeper

# ZooKeeper with the virtual machine's own choice of compilers and garbage collector.
_JAVA = ("java", "-Xmx512M", "-Djava.awt.headless=true")


class TreeServer(Server):
    """A server of a tree of znodes at `tree_port`."""

    tree_port = 0

    def clear(self) -> None:
        """Stops the server, deletes its data and starts it again."""
        self.stop()
        shutil.rmtree(self.directory / "data", ignore_errors=True)
        self.start()

    def await_tree(self) -> None:
        """Waits until a client can open a session and read the root. Raises RuntimeError if that does not succeed."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self.is_running:
            try:
                with closing(Session(self.tree_port)) as session:
                    session.ask(get_data("/"))
                return
            except OSError:  # ZooKeeper accepts connections before it serves
                time.sleep(0.002)
        raise RuntimeError(f"{self.name} does not serve its tree")


class Listening(Kafkapy, TreeServer):
    """A broker with the listener. The number of connections has no limit, as on the other servers."""

    def __init__(self, directory: Path, properties: Mapping[str, str], security: Security = PLAIN) -> None:
        super().__init__(directory, properties, security)
        self.tree_port = free_port()
        self.properties |= {
            "zookeeper.listener": f"{HOST}:{self.tree_port}",
            "zookeeper.tree.topic.replication.factor": "1",
            "zookeeper.listener.max.connections.per.address": "0",
        }

    def start(self) -> None:
        super().start()
        self.await_tree()


class _Peer(RealZooKeeper):
    java = _JAVA


class ZooKeeper(TreeServer):
    """Apache ZooKeeper, which syncs its log to the disk before it answers a change."""

    name = "zookeeper"
    clean_exits = (0, 143)  # a JVM that was shut down by SIGTERM exits with 128 + SIGTERM
    syncs = True

    def __init__(self, directory: Path, properties: Mapping[str, str], security: Security = PLAIN) -> None:
        super().__init__(directory, properties, security)
        self.peer = _Peer(self.directory, {"zookeeper.forceSync": "yes" if self.syncs else "no"})
        self.port = self.tree_port = self.peer.port

    def command(self) -> list[str]:
        return self.peer.command()

    def start(self) -> None:
        self.peer.start()
        self.process = self.peer.process
        self.await_tree()

    def secure(self) -> None:
        """Does nothing: every client may connect."""


class UnsyncedZooKeeper(ZooKeeper):
    """Apache ZooKeeper without syncs: as with the broker, the system decides when the log is written to the disk."""

    name = "zookeeper-unsynced"
    syncs = False


class ListenerOff(Kafkapy):
    """A broker without the listener, which is the default."""

    name = "listener-off"


class ListenerOn(Listening):
    name = "listener-on"
