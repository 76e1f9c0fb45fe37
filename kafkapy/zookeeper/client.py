"""One connection of a client that uses ZooKeeper's protocol to read and write the tree of znodes."""

from __future__ import annotations

from typing import Protocol

from kafkapy.security.sasl.server_mechanism import ServerMechanism
from kafkapy.zookeeper.acl import SASL, Identity
from kafkapy.zookeeper.errors import ZooKeeperError
from kafkapy.zookeeper.jute import encode_int, encode_long, encode_string
from kafkapy.zookeeper.requests import NOTIFICATION_XID
from kafkapy.zookeeper.watches import WatchEvent

_CONNECTED_STATE = 3  # of KeeperState


class FrameConnection(Protocol):
    """The interface of a connection to a client. The listener implements it, so that this module needs no sockets.

    `peer_host` is the client's address.
    """

    peer_host: str

    def send(self, frame: bytes) -> None:
        """Sends one frame; the connection puts the size of the frame before it."""

    def hold(self, size: int) -> None:
        """Counts the bytes of the frames that are to be sent later: `size` more, or less if it is negative."""

    def close(self, reason: str) -> None:
        """Closes the connection; `reason` is a text that says why."""


class Client:
    """A client's connection, its session, and the identities that the client has proved. Only the reactor's thread may
    use it.

    `session_id` is 0 until the client has opened or continued a session.
    """

    def __init__(self, connection: FrameConnection) -> None:
        self._connection = connection
        self.address = connection.peer_host
        self.session_id = 0
        self.timeout_ms = 0
        self.identities = [Identity("ip", self.address)]
        self.sasl_exchange: ServerMechanism | None = None
        self.received = 0
        self.sent = 0
        self.is_closed = False

    @property
    def has_sasl_identity(self) -> bool:
        return any(identity.scheme == SASL for identity in self.identities)

    def send(self, frame: bytes) -> None:
        """Sends a frame; does nothing if the connection is closed."""
        if not self.is_closed:
            self.sent += 1
            self._connection.send(frame)

    def hold(self, size: int) -> None:
        """Counts the bytes of frames that wait for earlier operations; while there are many, no request is read."""
        if not self.is_closed:
            self._connection.hold(size)

    def close(self, reason: str) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._connection.close(reason)


def encode_reply(xid: int, zxid: int, error: ZooKeeperError, body: bytes = b"") -> bytes:
    """Returns the frame of a reply. A reply with an error has no body."""
    return encode_int(xid) + encode_long(zxid) + encode_int(error) + body


def encode_event(event: WatchEvent, zxid: int) -> bytes:
    """Returns the frame that notifies a client of an event.

    `zxid` is that of the change that caused the event; -1 if it is not known.
    """
    body = encode_int(event.type) + encode_int(_CONNECTED_STATE) + encode_string(event.path)
    return encode_reply(NOTIFICATION_XID, zxid, ZooKeeperError.OK, body)
