"""A running broker with a listener for ZooKeeper's clients."""

from __future__ import annotations

from pathlib import Path

from tests.operations.watched_broker import WatchedBroker
from tests.ports import free_port


class ListeningBroker(WatchedBroker):
    """A broker on its own; its listener is at `zookeeper`, host:port. Clients retry until the tree is loaded."""

    def __init__(self, directory: Path, **properties: str) -> None:
        self.zookeeper = f"127.0.0.1:{free_port()}"
        settings = {"zookeeper.listener": self.zookeeper, "zookeeper.tree.topic.replication.factor": "1"}
        super().__init__(directory, {**settings, **{key.replace("_", "."): value for key, value in properties.items()}})
