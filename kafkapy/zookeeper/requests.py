"""The requests of ZooKeeper's clients: operation codes, and decoders of the requests' bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

from kafkapy.errors import ProtocolViolation
from kafkapy.named_tuple import NamedTuple
from kafkapy.zookeeper.acl import Acl, AclEntry, Identity
from kafkapy.zookeeper.jute import JuteReader, encode_int, encode_string


class Op(IntEnum):
    """The operation codes (`ZooDefs.OpCode`)."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CLOSE_SESSION = -11
    ERROR = -1


# The ids of requests and replies that are not answered in order of the client's own ids.
NOTIFICATION_XID, PING_XID, AUTH_XID, SET_WATCHES_XID = -1, -2, -4, -8


class ConnectRequest(NamedTuple):
    """The first frame of a connection.

    `session_id` 0 requests a new session. `last_zxid_seen` is the last change that the client knows. `knows_read_only`
    is False for clients before 3.4, which do not know read-only servers.
    """

    last_zxid_seen: int
    timeout_ms: int
    session_id: int
    password: bytes
    knows_read_only: bool


class Create(NamedTuple):
    """A request for a new node.

    `flags` is a CreateMode of ZooKeeper, and `ttl_ms` the time to live, -1 if the mode has none.
    """

    path: str
    data: bytes | None
    acl: Sequence[AclEntry] | None
    flags: int
    ttl_ms: int


class Delete(NamedTuple):
    path: str
    version: int


class SetData(NamedTuple):
    path: str
    data: bytes | None
    version: int


class SetAcl(NamedTuple):
    path: str
    acl: Sequence[AclEntry] | None
    version: int


class Check(NamedTuple):
    """An operation of a multi that changes nothing.

    It fails unless the node has the data version `version` (-1: any version).
    """

    path: str
    version: int


WriteRequest = Create | Delete | SetData | SetAcl | Check


class ReadRequest(NamedTuple):
    """A request to read a node; if `watches` is set, the next change of the node is reported to the client."""

    path: str
    watches: bool


def read_connect_request(frame: bytes) -> ConnectRequest:
    reader = JuteReader(frame)
    reader.read_int()  # the protocol version, which is always 0
    last_zxid, timeout_ms, session_id = reader.read_long(), reader.read_int(), reader.read_long()
    password = reader.read_buffer() or b""
    knows_read_only = reader.remaining > 0
    return ConnectRequest(last_zxid, timeout_ms, session_id, password, knows_read_only)


def encode_acl(acl: Acl) -> bytes:
    return encode_int(len(acl)) + b"".join(
        encode_int(permissions) + encode_string(identity.scheme) + encode_string(identity.id)
        for permissions, identity in acl
    )


def read_acl(reader: JuteReader) -> list[AclEntry] | None:
    return reader.read_vector(
        lambda: AclEntry(reader.read_int(), Identity(reader.read_string() or "", reader.read_string() or ""))
    )


def _read_create(reader: JuteReader) -> Create:
    return Create(reader.read_text(), reader.read_buffer(), read_acl(reader), reader.read_int(), -1)


def _read_create_ttl(reader: JuteReader) -> Create:
    return _read_create(reader)._replace(ttl_ms=reader.read_long())


def _read_set_data(reader: JuteReader) -> SetData:
    return SetData(reader.read_text(), reader.read_buffer(), reader.read_int())


def _read_set_acl(reader: JuteReader) -> SetAcl:
    return SetAcl(reader.read_text(), read_acl(reader), reader.read_int())


WRITE_READERS: dict[int, Callable[[JuteReader], WriteRequest]] = {
    Op.CREATE: _read_create,
    Op.CREATE2: _read_create,
    Op.CREATE_CONTAINER: _read_create,
    Op.CREATE_TTL: _read_create_ttl,
    Op.DELETE: lambda reader: Delete(reader.read_text(), reader.read_int()),
    Op.SET_DATA: _read_set_data,
    Op.SET_ACL: _read_set_acl,
    Op.CHECK: lambda reader: Check(reader.read_text(), reader.read_int()),
}
# The operations that a multi may contain.
_MULTI_OPS = frozenset((Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL, Op.DELETE, Op.SET_DATA, Op.CHECK))


def read_multi(reader: JuteReader) -> list[tuple[int, WriteRequest]]:
    """Returns the operations of a multi with their codes.

    Raises ProtocolViolation if the request cannot be decoded, or has an operation that a multi may not contain.
    """
    operations = []
    while (op := _next_of_multi(reader)) is not None:
        if op not in _MULTI_OPS:
            raise ProtocolViolation(f"operation {op} in a multi")
        operations.append((op, WRITE_READERS[op](reader)))
    return operations


def read_multi_read(reader: JuteReader) -> list[tuple[int, ReadRequest]]:
    """Returns the operations of a multiRead with their codes.

    Raises ProtocolViolation if the request cannot be decoded, or has an operation that a multiRead may not contain.
    """
    operations = []
    while (op := _next_of_multi(reader)) is not None:
        if op not in (Op.GET_DATA, Op.GET_CHILDREN):
            raise ProtocolViolation(f"operation {op} in a multiRead")
        operations.append((op, read_read(reader)))
    return operations


def _next_of_multi(reader: JuteReader) -> int | None:
    """Reads the header before an operation of a multi, a request that consists of several operations.

    Returns the operation's code, or None at the end of the multi.
    """
    op, is_end, _ = reader.read_int(), reader.read_bool(), reader.read_int()
    return None if is_end else op


def read_read(reader: JuteReader) -> ReadRequest:
    return ReadRequest(reader.read_text(), reader.read_bool())
