"""ZooKeeper's error codes, and the exception of an operation that the tree refuses."""

from __future__ import annotations

from enum import IntEnum


class ZooKeeperError(IntEnum):
    """The error codes (`KeeperException.Code` in ZooKeeper) that this server uses in responses."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    CONNECTION_LOSS = -4
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_MOVED = -118
    NO_WATCHER = -121
    SASL_REQUIRED = -124


class OperationError(Exception):
    """An operation that is refused; the client gets `code` in the header of its reply."""

    def __init__(self, code: ZooKeeperError) -> None:
        super().__init__(code.name)
        self.code = code
