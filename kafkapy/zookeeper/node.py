"""A znode, and what a client sees of it as its Stat."""

from __future__ import annotations

from struct import Struct

from kafkapy.named_tuple import NamedTuple
from kafkapy.zookeeper.acl import OPEN_ACL, Acl

_STAT = Struct(">qqqqiiiqiiq")

# Values of `owner` that are not sessions (ZooKeeper's EphemeralType).
PERSISTENT = 0
CONTAINER = -(1 << 63)
_TTL_BITS = -(1 << 56)  # the highest byte is 0xff
LARGEST_TTL_MS = (1 << 40) - 1


def ttl_owner(ttl_ms: int) -> int:
    """Returns the value of `Node.owner` for a node with the time to live `ttl_ms`.

    Such a node is deleted when its data have not been written for this time, and it has no children.
    """
    return _TTL_BITS | ttl_ms


class Node(NamedTuple):
    """A znode without its name and children. The object does not change: a change of the znode makes a new object.

    owner    the session of an ephemeral node, the result of `ttl_owner` for a TTL node, or else PERSISTENT or CONTAINER
    creates  the number of children that were ever created, which is the number of the next sequential child
    """

    data: bytes | None
    acl: Acl
    owner: int
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int = 0
    creates: int = 0
    acl_version: int = 0

    @property
    def is_ephemeral(self) -> bool:
        return self.owner != PERSISTENT and self.owner != CONTAINER and self.ttl_ms is None

    @property
    def ttl_ms(self) -> int | None:
        """The time to live of a TTL node; None for other nodes."""
        return self.owner & LARGEST_TTL_MS if self.owner >> 56 == -1 else None

    def encode_stat(self, child_count: int) -> bytes:
        """Returns the node's Stat in ZooKeeper's encoding; its cversion counts the creations and deletions of children.

        `child_count` is the number of children now.
        """
        return _STAT.pack(
            self.czxid,
            self.mzxid,
            self.ctime_ms,
            self.mtime_ms,
            self.version,
            as_int32(2 * self.creates - child_count),
            self.acl_version,
            self.owner if self.is_ephemeral else 0,
            len(self.data or b""),
            child_count,
            self.pzxid,
        )


def as_int32(value: int) -> int:
    """Returns `value` modulo 2 ** 32 as a signed number: Java's int, in which version counters overflow."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def initial_node(data: bytes | None = b"") -> Node:
    """Returns a node with `data` that exists in every new tree before the first change."""
    return Node(data, OPEN_ACL, PERSISTENT, 0, 0, 0, 0, 0)
