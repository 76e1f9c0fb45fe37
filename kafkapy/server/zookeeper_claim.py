"""Ensures that only one broker at a time writes the mirror: Kafka's znodes in a ZooKeeper of the user.

A broker becomes the writer by its claim. The claim is a znode that names the writer, and the offset of the metadata log
at which it became the writer. Every write is a transaction that checks the version of this znode, as Kafka's brokers
checked /controller_epoch: after another broker has claimed the mirror, the writes of the former writer fail. A broker
that was cut off from the cluster or suspended cannot claim the mirror if its metadata are older than the metadata of
the broker that made the last claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoNodeError, RolledBackError
from kazoo.protocol.serialization import Create, Delete, SetData
from kazoo.security import OPEN_ACL_UNSAFE

from kafkapy.zookeeper.view import decode_json, encode_json

CLAIM_PATH = "/kafkapy_mirror"
# Operations in one transaction: a state is about 150 bytes, and ZooKeeper refuses requests of more than 1 MiB.
_MOST_OPERATIONS = 500

Operation = Any  # a request of kazoo, which has no types


class NotTheWriter(Exception):
    """Raised if another broker has become the writer of the mirror, Kafka's znodes in a user's ZooKeeper.

    The text names that broker.
    """


class Claim:
    """Writes the mirror, Kafka's znodes in a user's ZooKeeper, for the broker that claimed it last. Not thread-safe."""

    def __init__(self, client: KazooClient, node_id: int) -> None:
        self._client = client
        self._node_id = node_id
        self._version = -1

    def take(self, metadata_offset: int) -> None:
        """Makes this broker the writer of the mirror.

        `metadata_offset` is the offset of the metadata image that the broker is about to write to the mirror. Raises
        NotTheWriter if the present writer claimed the mirror at a larger offset, and KazooException.
        """
        value = {"version": 1, "brokerid": self._node_id, "metadata_offset": metadata_offset}
        data = encode_json(value)
        try:
            found, stat = self._client.get(CLAIM_PATH)
        except NoNodeError:
            self._client.create(CLAIM_PATH, data, makepath=True)
            self._version = 0
            return
        holder, offset = _decode(found)
        if offset > metadata_offset:
            raise NotTheWriter(f"broker {holder}, whose metadata at offset {offset} are newer")
        self._version = self._client.set(CLAIM_PATH, data, version=stat.version).version

    def create(self, path: str, data: bytes | None, *, is_ephemeral: bool) -> Create:
        """Returns the operation that creates a znode with the client's default ACL.

        If the client has no default ACL, everybody has all permissions on the znode.
        """
        acl = self._client.default_acl or OPEN_ACL_UNSAFE
        return Create(self._client.chroot + path, data, acl, int(is_ephemeral))

    def set(self, path: str, data: bytes | None) -> SetData:
        return SetData(self._client.chroot + path, data, -1)

    def delete(self, path: str) -> Delete:
        return Delete(self._client.chroot + path, -1)

    def commit(self, operations: Sequence[Operation]) -> None:
        """Makes the changes in transactions, each of which has an effect only if this broker is still the writer.

        Raises NotTheWriter if another broker has become the writer, and KazooException for the first operation that
        failed.
        """
        for start in range(0, len(operations), _MOST_OPERATIONS):
            transaction = self._client.transaction()
            transaction.check(CLAIM_PATH, self._version)
            transaction.operations += operations[start : start + _MOST_OPERATIONS]
            check, *others = transaction.commit()
            if isinstance(check, (BadVersionError, NoNodeError)):
                raise NotTheWriter(self._describe_writer())
            for result in (check, *others):
                if isinstance(result, Exception) and not isinstance(result, RolledBackError):
                    raise result

    def _describe_writer(self) -> str:
        try:
            holder, _ = _decode(self._client.get(CLAIM_PATH)[0])
        except NoNodeError:
            return f"none: {CLAIM_PATH} was deleted"
        return f"broker {holder}"


def _decode(data: bytes) -> tuple[int, int]:
    """Returns the id of the writer and the metadata offset in the data of the claim; (-1, -1) if it is damaged."""
    try:
        value = decode_json(data)
        return int(value["brokerid"]), int(value["metadata_offset"])
    except (ValueError, KeyError, TypeError):
        return -1, -1
