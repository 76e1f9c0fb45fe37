"""The four-letter words: short requests of operators, which are answered with text."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from kafkapy import __version__
from kafkapy.zookeeper.client import Client
from kafkapy.zookeeper.tree import Tree
from kafkapy.zookeeper.watches import Watches

WORD_BYTES = 4
# The release of ZooKeeper whose protocol and answers these are.
ZOOKEEPER_VERSION = "3.9.3"
_VERSION = f"{ZOOKEEPER_VERSION}-kafkapy-{__version__}"


class WatchedServer(Protocol):
    """The attributes of the server whose values the answers contain."""

    tree: Tree
    watches: Watches[Client]
    clients: dict[Client, None]
    received_count: int

    @property
    def sent_count(self) -> int: ...

    @property
    def outstanding_count(self) -> int: ...


def _srvr(server: WatchedServer) -> str:
    return (
        f"Zookeeper version: {_VERSION}\n"
        "Latency min/avg/max: 0/0.0/0\n"
        f"Received: {server.received_count}\n"
        f"Sent: {server.sent_count}\n"
        f"Connections: {len(server.clients)}\n"
        f"Outstanding: {server.outstanding_count}\n"
        f"Zxid: 0x{server.tree.zxid:x}\n"
        "Mode: standalone\n"
        f"Node count: {len(server.tree.nodes)}\n"
    )


def _stat(server: WatchedServer) -> str:
    version, _, rest = _srvr(server).partition("\n")
    return f"{version}\nClients:\n{_connections(server)}\n{rest}"


def _connections(server: WatchedServer) -> str:
    return "".join(
        f" /{client.address}[1](queued=0,recved={client.received},sent={client.sent})\n" for client in server.clients
    )


def _cons(server: WatchedServer) -> str:
    return "".join(
        f" /{client.address}[1](queued=0,recved={client.received},sent={client.sent},sid=0x{client.session_id:x},"
        f"to={client.timeout_ms})\n"
        for client in server.clients
    )


def _mntr(server: WatchedServer) -> str:
    tree = server.tree
    values = {
        "version": _VERSION,
        "server_state": "standalone",
        "packets_received": server.received_count,
        "packets_sent": server.sent_count,
        "num_alive_connections": len(server.clients),
        "outstanding_requests": server.outstanding_count,
        "znode_count": len(tree.nodes),
        "watch_count": len(server.watches),
        "ephemerals_count": sum(map(len, tree.ephemerals.values())),
        "global_sessions": len(tree.sessions),
        "approximate_data_size": sum(len(path) + len(node.data or b"") for path, node in tree.nodes.items()),
        "open_file_descriptor_count": len(os.listdir("/proc/self/fd")),
    }
    return "".join(f"zk_{name}\t{value}\n" for name, value in values.items())


def _envi(server: WatchedServer) -> str:
    return f"Environment:\nzookeeper.version={_VERSION}\nhost.name={os.uname().nodename}\n"


def _wchs(server: WatchedServer) -> str:
    watches = server.watches
    counts = f"{watches.watcher_count} connections watching {watches.path_count} paths"
    return f"{counts}\nTotal watches:{len(watches)}\n"


def _dump(server: WatchedServer) -> str:
    tree = server.tree
    lines = [f"Sessions ({len(tree.sessions)}):", *(f"0x{session_id:x}" for session_id in sorted(tree.sessions))]
    lines.append(f"Sessions with Ephemerals ({len(tree.ephemerals)}):")
    for session_id, paths in sorted(tree.ephemerals.items()):
        lines += [f"0x{session_id:x}:", *(f"\t{path}" for path in sorted(paths))]
    return "\n".join(lines) + "\n"


# word -> the function that returns its answer
WORDS: dict[str, Callable[[WatchedServer], str]] = {
    "cons": _cons,
    "dump": _dump,
    "envi": _envi,
    "isro": lambda server: "rw",
    "mntr": _mntr,
    "ruok": lambda server: "imok",
    "srvr": _srvr,
    "stat": _stat,
    "wchs": _wchs,
}


def answer_to(word: str, server: WatchedServer) -> str:
    """Returns the text that answers a four-letter word, which must be one of WORDS."""
    return WORDS[word](server)
