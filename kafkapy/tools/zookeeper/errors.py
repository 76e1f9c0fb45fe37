"""The errors of requests to ZooKeeper, with the texts of ZooKeeper's Java client."""

from __future__ import annotations

# The texts of the codes in `KeeperException`.
_CODE_TEXTS = {
    -1: "SystemError",
    -2: "RuntimeInconsistency",
    -3: "DataInconsistency",
    -4: "ConnectionLoss",
    -5: "MarshallingError",
    -6: "Unimplemented",
    -7: "OperationTimeout",
    -8: "BadArguments",
    -13: "NewConfigNoQuorum",
    -14: "ReconfigInProgress",
    -100: "APIError",
    -101: "NoNode",
    -102: "NoAuth",
    -103: "BadVersion",
    -108: "NoChildrenForEphemerals",
    -110: "NodeExists",
    -111: "Directory not empty",
    -112: "Session expired",
    -114: "InvalidACL",
    -115: "AuthFailed",
    -118: "Session moved",
    -119: "Not a read-only call",
    -121: "No such watcher",
    -123: "Reconfig is disabled",
    -125: "Quota has exceeded",
}
CONNECTION_LOSS, NO_NODE, NODE_EXISTS, NOT_EMPTY = -4, -101, -110, -111
NO_AUTH, AUTH_FAILED, SESSION_EXPIRED, INVALID_ACL = -102, -115, -112, -114


class ZooKeeperRequestError(Exception):
    """A request that ZooKeeper has refused, or whose connection was lost.

    `code` is a code of ZooKeeper's `KeeperException`.
    """

    def __init__(self, code: int, path: str | None) -> None:
        text = f"KeeperErrorCode = {_CODE_TEXTS.get(code, f'Unknown error {code}')}"
        super().__init__(f"{text} for {path}" if path is not None else text)
        self.code = code
        self.path = path


class ConnectError(Exception):
    """The error that no server of the connect string accepts a session."""
