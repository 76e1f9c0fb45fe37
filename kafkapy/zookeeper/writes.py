"""The operations that change the tree: each checks a request and adds its changes to a transaction.

The order of the checks is that of ZooKeeper's PrepRequestProcessor, because it decides which error a client gets.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kafkapy.zookeeper import acl as permissions
from kafkapy.zookeeper.acl import Identity, check_permission, resolved_acl
from kafkapy.zookeeper.errors import OperationError, ZooKeeperError
from kafkapy.zookeeper.jute import encode_bool, encode_int, encode_string
from kafkapy.zookeeper.node import CONTAINER, LARGEST_TTL_MS, PERSISTENT, Node, as_int32, ttl_owner
from kafkapy.zookeeper.paths import SYSTEM_NODES, check_path, parent_of
from kafkapy.zookeeper.requests import Check, Create, Delete, Op, SetAcl, SetData, WriteRequest
from kafkapy.zookeeper.tree import Session, Transaction

# Values of `Create.flags`.
_EPHEMERAL, _SEQUENTIAL, _EPHEMERAL_SEQUENTIAL, _CONTAINER, _TTL, _TTL_SEQUENTIAL = range(1, 7)
ANY_VERSION = -1


def write(
    transaction: Transaction, op: int, request: WriteRequest, session_id: int, identities: Collection[Identity]
) -> bytes:
    """Adds the changes of one request to the transaction, and returns the body of the response.

    Raises OperationError; the transaction must not be used after that.
    """
    if not isinstance(request, Check) and transaction.is_protected(request.path):
        # Tools create Kafka's folders whenever they start, and expect that the folders exist.
        is_there = isinstance(request, Create) and transaction.get(request.path) is not None
        raise OperationError(ZooKeeperError.NODE_EXISTS if is_there else ZooKeeperError.NO_AUTH)
    if isinstance(request, Create):
        path = _create(transaction, request, session_id, identities)
        return encode_string(path) + (b"" if op == Op.CREATE else transaction.stat(path))
    if isinstance(request, Delete):
        _delete(transaction, request, identities)
        return b""
    if isinstance(request, SetData):
        _set_data(transaction, request, identities)
    elif isinstance(request, SetAcl):
        _set_acl(transaction, request, identities)
    else:
        _check(transaction, request, identities)
        return b""
    return transaction.stat(request.path)


def write_all(
    transaction: Transaction,
    operations: Sequence[tuple[int, WriteRequest]],
    session_id: int,
    identities: Collection[Identity],
) -> tuple[bytes, bool]:
    """Adds the changes of a multi to the transaction; returns the body of the response, and whether it succeeded.

    If one of the operations fails, the transaction must not be used, and the response has an error for each operation.
    """
    results = []
    for index, (op, request) in enumerate(operations):
        try:
            body = write(transaction, op, request, session_id, identities)
        except OperationError as error:
            codes = [ZooKeeperError.OK] * index + [error.code]
            codes += [ZooKeeperError.RUNTIME_INCONSISTENCY] * (len(operations) - len(codes))
            return b"".join([encode_error(code) for code in codes]) + END_OF_MULTI, False
        results.append(multi_header(op) + body)
    return b"".join(results) + END_OF_MULTI, True


def multi_header(op: int) -> bytes:
    """Returns the bytes before the result of a successful operation in the response to a multi."""
    return encode_int(op) + encode_bool(False) + encode_int(ZooKeeperError.OK)


def encode_error(code: ZooKeeperError) -> bytes:
    """Returns the bytes of an operation's error in the response to a multi.

    The code is OK for an operation that succeeded, but was undone because a later one failed.
    """
    return encode_int(Op.ERROR) + encode_bool(False) + encode_int(code) + encode_int(code)


END_OF_MULTI = encode_int(-1) + encode_bool(True) + encode_int(-1)


def open_session(transaction: Transaction, session_id: int, password: bytes, timeout_ms: int) -> None:
    transaction.sessions[session_id] = Session(password, timeout_ms, transaction.zxid)


def close_session(transaction: Transaction, session_id: int) -> None:
    """Adds the end of the session to the transaction, and the deletion of the session's ephemeral nodes."""
    transaction.sessions[session_id] = None
    for path in sorted(transaction.tree.ephemerals.get(session_id, ())):
        transaction.delete(path)


def _create(transaction: Transaction, request: Create, session_id: int, identities: Collection[Identity]) -> str:
    """Creates the node and returns its path, which ends with a number if the node is sequential."""
    owner = _owner(request, session_id)
    path = request.path
    parent_path = parent_of(path)
    acl = resolved_acl(request.acl, identities, transaction.acl_schemes)
    parent = transaction.find(parent_path)
    check_permission(parent.acl, permissions.CREATE, identities)
    if request.flags in (_SEQUENTIAL, _EPHEMERAL_SEQUENTIAL, _TTL_SEQUENTIAL):
        path += f"{as_int32(parent.creates):010d}"
    check_path(path)
    if transaction.get(path) is not None:
        raise OperationError(ZooKeeperError.NODE_EXISTS)
    if parent.is_ephemeral:
        raise OperationError(ZooKeeperError.NO_CHILDREN_FOR_EPHEMERALS)
    transaction.create(path, request.data, acl, owner)
    return path


def _owner(request: Create, session_id: int) -> int:
    """Returns the value of `Node.owner` for a new node, according to the mode that the client requests.

    It is the session's id for an ephemeral node, the result of `ttl_owner` for a TTL node, CONTAINER for a container,
    and PERSISTENT for any other node. Raises OperationError BAD_ARGUMENTS for a mode that does not exist, or an invalid
    time to live.
    """
    flags = request.flags
    if not 0 <= flags <= _TTL_SEQUENTIAL:
        raise OperationError(ZooKeeperError.BAD_ARGUMENTS)
    if flags in (_EPHEMERAL, _EPHEMERAL_SEQUENTIAL):
        return session_id
    if flags == _CONTAINER:
        return CONTAINER
    if flags in (_TTL, _TTL_SEQUENTIAL):
        if not 0 < request.ttl_ms <= LARGEST_TTL_MS:
            raise OperationError(ZooKeeperError.BAD_ARGUMENTS)
        return ttl_owner(request.ttl_ms)
    return PERSISTENT


def _delete(transaction: Transaction, request: Delete, identities: Collection[Identity]) -> None:
    path = request.path
    parent_path = parent_of(path)
    if path in SYSTEM_NODES:
        raise OperationError(ZooKeeperError.BAD_ARGUMENTS)
    check_permission(transaction.find(parent_path).acl, permissions.DELETE, identities)
    _check_version(transaction.find(path).version, request.version)
    if transaction.child_count(path):
        raise OperationError(ZooKeeperError.NOT_EMPTY)
    transaction.delete(path)


def _set_data(transaction: Transaction, request: SetData, identities: Collection[Identity]) -> None:
    node = _permitted(transaction, request.path, permissions.WRITE, identities)
    _check_version(node.version, request.version)
    transaction.replace_data(request.path, request.data, as_int32(node.version + 1))


def _set_acl(transaction: Transaction, request: SetAcl, identities: Collection[Identity]) -> None:
    check_path(request.path)
    acl = resolved_acl(request.acl, identities, transaction.acl_schemes)
    node = _permitted(transaction, request.path, permissions.ADMIN, identities)
    _check_version(node.acl_version, request.version)
    transaction.replace_acl(request.path, acl, as_int32(node.acl_version + 1))


def _check(transaction: Transaction, request: Check, identities: Collection[Identity]) -> None:
    node = _permitted(transaction, request.path, permissions.READ, identities)
    _check_version(node.version, request.version)


def _permitted(transaction: Transaction, path: str, permission: int, identities: Collection[Identity]) -> Node:
    check_path(path)
    node = transaction.find(path)
    check_permission(node.acl, permission, identities)
    return node


def _check_version(present: int, expected: int) -> None:
    if expected not in (ANY_VERSION, present):
        raise OperationError(ZooKeeperError.BAD_VERSION)
