"""The operations that read the tree, and those that set watches."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafkapy.errors import ProtocolViolation
from kafkapy.zookeeper import acl as permissions
from kafkapy.zookeeper.acl import Identity, check_permission, without_digests
from kafkapy.zookeeper.errors import OperationError, ZooKeeperError
from kafkapy.zookeeper.jute import encode_buffer, encode_int, encode_strings
from kafkapy.zookeeper.node import Node
from kafkapy.zookeeper.requests import Op, ReadRequest, encode_acl
from kafkapy.zookeeper.tree import Tree
from kafkapy.zookeeper.writes import END_OF_MULTI, encode_error, multi_header

# The largest result of one multiRead. A client of ZooKeeper accepts 1 MiB by default (jute.maxbuffer).
MOST_RESULT_BYTES = 16 << 20


def exists(tree: Tree, path: str) -> bytes:
    """Returns the encoded Stat of a node.

    Raises OperationError NO_NODE, or BAD_ARGUMENTS for a path with a null character.
    """
    if "\0" in path:
        raise OperationError(ZooKeeperError.BAD_ARGUMENTS)
    tree.find(path)
    return tree.stat(path)


def get_data(tree: Tree, path: str, identities: Collection[Identity]) -> bytes:
    node = _readable(tree, path, identities)
    return encode_buffer(node.data) + tree.stat(path)


def get_children(tree: Tree, path: str, identities: Collection[Identity]) -> bytes:
    """Returns the encoded names of a node's children in alphabetical order; ZooKeeper returns them in no particular
    order.

    Raises OperationError if the node does not exist, or none of `identities` may read it.
    """
    _readable(tree, path, identities)
    return encode_strings(sorted(tree.children(path)))


def get_children2(tree: Tree, path: str, identities: Collection[Identity]) -> bytes:
    return get_children(tree, path, identities) + tree.stat(path)


def get_acl(tree: Tree, path: str, identities: Collection[Identity]) -> bytes:
    """Returns the encoded ACL and Stat of a node.

    Digests of passwords are replaced by "x" if none of `identities` may change the ACL.
    """
    node = tree.find(path)
    check_permission(node.acl, permissions.READ | permissions.ADMIN, identities)
    acl = node.acl
    try:
        check_permission(acl, permissions.ADMIN, identities)
    except OperationError:
        acl = without_digests(acl)
    return encode_acl(acl) + tree.stat(path)


def get_ephemerals(tree: Tree, prefix: str, session_id: int) -> bytes:
    """Returns the encoded paths of the session's ephemeral nodes that start with `prefix`, sorted."""
    return encode_strings(sorted(_matching(tree.ephemerals.get(session_id, ()), prefix)))


def get_all_children_number(tree: Tree, path: str, identities: Collection[Identity]) -> bytes:
    """Returns the encoded number of a node's descendants.

    Raises OperationError if the node does not exist, or none of `identities` may read it.
    """
    _readable(tree, path, identities)
    return encode_int(sum(1 for _ in tree.paths_below(path)))


def multi_read(tree: Tree, operations: Iterable[tuple[int, ReadRequest]], identities: Collection[Identity]) -> bytes:
    """Returns the encoded results of several reads; a read that is refused has an error code as its result.

    `operations` are pairs of an operation code (`Op`) and its request. Raises ProtocolViolation if the results are
    larger than MOST_RESULT_BYTES, because a small request can name a large node many times.
    """
    results = []
    size = 0
    for op, request in operations:
        read = get_data if op == Op.GET_DATA else get_children
        try:
            result = multi_header(op) + read(tree, request.path, identities)
        except OperationError as error:
            result = encode_error(error.code)
        results.append(result)
        size += len(result)
        if size > MOST_RESULT_BYTES:
            raise ProtocolViolation(f"the results of a multiRead have more than {MOST_RESULT_BYTES} bytes")
    return b"".join(results) + END_OF_MULTI


def _readable(tree: Tree, path: str, identities: Collection[Identity]) -> Node:
    node = tree.find(path)
    check_permission(node.acl, permissions.READ, identities)
    return node


def _matching(paths: Iterable[str], prefix: str) -> list[str]:
    return [path for path in paths if path.startswith(prefix)]
