"""Reads and writes the offsets of consumer groups in znodes, as Kafka's brokers with ZooKeeper did for clients."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kafkapy.errors import Error
from kafkapy.types import TopicPartition
from kafkapy.zookeeper.acl import OPEN_ACL
from kafkapy.zookeeper.errors import OperationError
from kafkapy.zookeeper.node import PERSISTENT
from kafkapy.zookeeper.outbox import Call
from kafkapy.zookeeper.paths import check_path, parent_of
from kafkapy.zookeeper.requests import Create, Op, SetData
from kafkapy.zookeeper.server import ZooKeeperServer
from kafkapy.zookeeper.tree import Transaction
from kafkapy.zookeeper.writes import ANY_VERSION, write

_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")
_LONGS = range(-(1 << 63), 1 << 63)


class ConsumerOffsets:
    """Reads and writes the nodes `/consumers/GROUP/offsets/TOPIC/PARTITION` below `chroot` ("" for the root).

    The ACLs of the nodes are checked as for a client that has proved no identity. Only the reactor's thread may use it.
    """

    def __init__(self, server: ZooKeeperServer, chroot: str) -> None:
        self._server = server
        self._chroot = chroot

    def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        on_done: Callable[[dict[TopicPartition, tuple[int, Error]]], None],
    ) -> None:
        """Reads a group's offsets, and calls `on_done` with (offset, NONE) or (-1, error) of each partition.

        The errors are those of Kafka's brokers: UNKNOWN_TOPIC_OR_PARTITION if nothing is committed,
        UNKNOWN_SERVER_ERROR if the node is no number or may not be read, and COORDINATOR_NOT_AVAILABLE if the server
        closes all connections first. `on_done` is called after the log has committed all changes of these offsets.
        """
        found = {partition: self._read(group_id, partition) for partition in partitions}

        def answer(is_committed: bool) -> None:
            on_done(found if is_committed else dict.fromkeys(partitions, (-1, Error.COORDINATOR_NOT_AVAILABLE)))

        self._server.outbox.send(Call(answer), b"")

    def _read(self, group_id: str, partition: TopicPartition) -> tuple[int, Error]:
        try:
            data = self._server.read_data(self._path(group_id, partition))
        except OperationError:
            return -1, Error.UNKNOWN_SERVER_ERROR
        if data is None:
            return -1, Error.UNKNOWN_TOPIC_OR_PARTITION
        if not _NUMBER.fullmatch(data) or int(data) not in _LONGS:
            return -1, Error.UNKNOWN_SERVER_ERROR
        return int(data), Error.NONE

    def commit(self, group_id: str, partition: TopicPartition, offset: int, on_done: Callable[[Error], None]) -> None:
        """Writes an offset, and the parent nodes that do not exist; calls `on_done` with the outcome.

        The outcome is NONE when the log has committed the change, UNKNOWN_SERVER_ERROR if the tree refuses the change,
        for example by an ACL, and COORDINATOR_NOT_AVAILABLE if the append to the log fails.
        """
        path = self._path(group_id, partition)
        transaction = self._server.begin()
        try:
            check_path(path)
            _put(transaction, path, str(offset).encode())
        except OperationError:
            on_done(Error.UNKNOWN_SERVER_ERROR)
            return
        self._server.commit(
            transaction, lambda error: on_done(Error.COORDINATOR_NOT_AVAILABLE if error else Error.NONE)
        )

    def _path(self, group_id: str, partition: TopicPartition) -> str:
        return f"{self._chroot}/consumers/{group_id}/offsets/{partition.topic}/{partition.partition}"


def _put(transaction: Transaction, path: str, data: bytes | None) -> None:
    """Sets the data of a node; creates the node, with its parents, if it does not exist. Raises OperationError."""
    if transaction.get(path) is not None:
        write(transaction, Op.SET_DATA, SetData(path, data, ANY_VERSION), PERSISTENT, ())
        return
    parent = parent_of(path)
    if transaction.get(parent) is None:
        _put(transaction, parent, None)
    write(transaction, Op.CREATE, Create(path, data, OPEN_ACL, 0, -1), PERSISTENT, ())
