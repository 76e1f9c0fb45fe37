"""Serves ZooKeeper's clients on the broker that has the tree of znodes: their sessions, requests and watches.

frame of a client -> read: the tree's present state -> reply, after the replies of all earlier operations
                  -> write: Transaction -> log -> tree -> watch events and reply, when the log has committed
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence

from kafkapy.coordinator.runtime import CoordinatorRuntime, ignore_response
from kafkapy.errors import Error, ProtocolViolation
from kafkapy.named_tuple import NamedTuple
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed, ServerMechanism
from kafkapy.types import Clock
from kafkapy.zookeeper.acl import READ, SASL, Identity, check_permission, digest_id, may_read
from kafkapy.zookeeper.client import Client, encode_event, encode_reply
from kafkapy.zookeeper.commands import Commands
from kafkapy.zookeeper.errors import OperationError, ZooKeeperError
from kafkapy.zookeeper.jute import JuteReader, encode_bool, encode_buffer, encode_int, encode_long
from kafkapy.zookeeper.node import CONTAINER
from kafkapy.zookeeper.outbox import Outbox, Slot
from kafkapy.zookeeper.read_requests import READS
from kafkapy.zookeeper.requests import (
    AUTH_XID,
    PING_XID,
    WRITE_READERS,
    ConnectRequest,
    Op,
    read_connect_request,
    read_multi,
)
from kafkapy.zookeeper.session_clock import SessionClock
from kafkapy.zookeeper.settings import ZooKeeperSettings
from kafkapy.zookeeper.shard import ZooKeeperShard
from kafkapy.zookeeper.tree import Transaction, Tree
from kafkapy.zookeeper.watches import Watches
from kafkapy.zookeeper.writes import close_session, open_session, write, write_all

logger = logging.getLogger("kafkapy.zookeeper.Server")

PARTITION = 0  # of the internal topic
_SESSION_PASSWORD_BYTES = 16
_EXPIRY_INTERVAL_MS = 500
_CONTAINER_INTERVAL_MS = 60_000
# The time after which a deletion that the log has refused is tried again.
_DELETE_AGAIN_MS = 2_000
# Session ids have this bit, which the other values of a node's owner lack.
_SESSION_BIT = 1 << 56
# Requests that this server knows and does not serve; the connection stays open.
_UNSERVED = frozenset((Op.RECONFIG, Op.SASL))
# Requests of clients that have not authenticated yet, on a listener that requires it.
_AUTHENTICATIONS = frozenset((Op.AUTH, Op.SASL))

OnDone = Callable[[Error], None]
# Constructs the server's side of one SASL exchange.
MakeExchange = Callable[[], ServerMechanism]


class ServerCounts(NamedTuple):
    """The numbers of what a server stores and serves at one moment, such as its nodes and sessions.

    `outstanding` is the number of operations that wait for the log. `received` counts requests, and `sent` replies and
    events, from the start of the server.
    """

    nodes: int
    ephemerals: int
    sessions: int
    connections: int
    watches: int
    outstanding: int
    received: int
    sent: int


class ZooKeeperServer:
    """Serves the clients of one loaded tree. Only the reactor's thread may use it.

    A server exists from the load of the tree until the broker is no longer the leader of the partition that stores it.
    Clients may authenticate by SASL if `make_sasl_exchange` is set.
    """

    def __init__(
        self,
        shard: ZooKeeperShard,
        runtime: CoordinatorRuntime[ZooKeeperShard],
        settings: ZooKeeperSettings,
        schedule: Schedule,
        clock: Clock,
        make_sasl_exchange: MakeExchange | None = None,
    ) -> None:
        self.tree: Tree = shard.tree
        self.watches: Watches[Client] = Watches()
        self.clients: dict[Client, None] = {}
        self.outbox = Outbox()
        self.commands: Commands | None = None
        self.received_count = 0
        self._shard = shard
        self._runtime = runtime
        self._settings = settings
        self._schedule = schedule
        self._clock = clock
        self._make_sasl_exchange = make_sasl_exchange
        self._clients_by_session: dict[int, Client] = {}
        self._session_clock = SessionClock(shard.tree.sessions, clock.monotonic_ms())
        self._timers: dict[str, TimerEntry] = {}
        self._is_stopped = False
        self._repeat("expiry", _EXPIRY_INTERVAL_MS, self._expire)
        self._repeat("containers", _CONTAINER_INTERVAL_MS, self._delete_empty_containers)

    def counts(self) -> ServerCounts:
        """Returns the numbers for the metrics page. Any thread may call it."""
        tree = self.tree
        return ServerCounts(
            nodes=len(tree.nodes),
            ephemerals=sum(map(len, list(tree.ephemerals.values()))),
            sessions=len(tree.sessions),
            connections=len(self.clients),
            watches=len(self.watches),
            outstanding=len(self.outbox),
            received=self.received_count,
            sent=self.sent_count,
        )

    def stop(self, reason: str) -> None:
        """Closes all connections; `reason` is a text that says why.

        The sessions stay in the log, and clients continue them at the broker that serves the tree next.
        """
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._is_stopped = True
        self._drop_clients(reason)

    def _drop_clients(self, reason: str) -> None:
        self.outbox.clear()
        for client in list(self.clients):
            client.close(reason)
            self.disconnected(client)

    def _repeat(self, name: str, interval_ms: int, work: Callable[[], None]) -> None:
        def run() -> None:
            self._repeat(name, interval_ms, work)
            work()

        self._timers[name] = self._schedule(interval_ms, run)

    @property
    def sent_count(self) -> int:
        """The number of replies and watch events that were sent."""
        return self.outbox.sent_count

    @property
    def outstanding_count(self) -> int:
        """The number of operations whose replies have not been sent yet."""
        return len(self.outbox)

    # -- connections

    def connected(self, client: Client) -> None:
        self.clients[client] = None

    def disconnected(self, client: Client) -> None:
        """Removes the connection of `client`, which has ended, and its watches. The session stays until it expires."""
        client.is_closed = True
        if client not in self.clients:
            return
        del self.clients[client]
        self.watches.remove_watcher(client)
        if self._clients_by_session.get(client.session_id) is client:
            del self._clients_by_session[client.session_id]

    def receive(self, client: Client, frame: bytes) -> None:
        """Handles one frame of a client. The connection is closed if the frame cannot be decoded.

        Frames that arrive after the server has closed the connection are ignored.
        """
        if client.is_closed:
            return
        self.received_count += 1
        client.received += 1
        try:
            if client.session_id:
                self._request(client, frame)
            else:
                self._connect(client, read_connect_request(frame))
        except ProtocolViolation as error:
            logger.warning("Closing the connection of /%s: %s", client.address, error)
            client.close("its frame cannot be decoded")

    # -- sessions

    def _connect(self, client: Client, request: ConnectRequest) -> None:
        if request.last_zxid_seen > self.tree.zxid:
            logger.info(
                "Refusing /%s, which has seen zxid 0x%x; the tree is at 0x%x",
                client.address, request.last_zxid_seen, self.tree.zxid,
            )  # fmt: skip
            client.close("the client has seen a newer tree")
            return
        settings = self._settings
        timeout_ms = min(max(request.timeout_ms, settings.min_session_timeout_ms), settings.max_session_timeout_ms)
        if request.session_id == 0:
            self._open_session(client, timeout_ms, request.knows_read_only)
            return
        session = self.tree.sessions.get(request.session_id)
        if session is None or not secrets.compare_digest(session.password, request.password):
            what = "does not exist" if session is None else "has another password"
            logger.warning("Refusing /%s: its session 0x%x %s", client.address, request.session_id, what)
            self.outbox.send(client, _connect_response(0, 0, bytes(_SESSION_PASSWORD_BYTES), request.knows_read_only))
            self.outbox.send(_Closer(client, "its session has expired"), b"")
            return
        previous = self._clients_by_session.pop(request.session_id, None)
        if previous is not None:
            logger.info(
                "Closing the connection of /%s: the session 0x%x has moved", previous.address, request.session_id
            )
            previous.close("its client has connected again")
            self.disconnected(previous)
        client.timeout_ms = timeout_ms
        self._session_clock.start(request.session_id, timeout_ms, self._clock.monotonic_ms())
        self._serve_session(client, request.session_id)
        self.outbox.send(
            client, _connect_response(timeout_ms, request.session_id, session.password, request.knows_read_only)
        )

    def _open_session(self, client: Client, timeout_ms: int, knows_read_only: bool) -> None:
        transaction = self.begin()
        session_id = _SESSION_BIT | transaction.zxid
        password = secrets.token_bytes(_SESSION_PASSWORD_BYTES)
        open_session(transaction, session_id, password, timeout_ms)
        client.timeout_ms = timeout_ms
        self._session_clock.start(session_id, timeout_ms, self._clock.monotonic_ms())
        self._serve_session(client, session_id)
        response = _connect_response(timeout_ms, session_id, password, knows_read_only)
        self._commit(transaction, lambda slot: slot.add(client, response))

    def _serve_session(self, client: Client, session_id: int) -> None:
        client.session_id = session_id
        self._clients_by_session[session_id] = client

    def _close_session(self, client: Client, xid: int) -> None:
        transaction = self.begin()
        close_session(transaction, client.session_id)
        self._session_clock.end(client.session_id)

        def reply(slot: Slot) -> None:
            slot.add(client, encode_reply(xid, transaction.zxid, ZooKeeperError.OK))
            slot.add(_Closer(client, "its session is closed"), b"")

        self._commit(transaction, reply, lambda error: self._restart_if_open(client.session_id))

    def _restart_if_open(self, session_id: int) -> None:
        """Starts the clock of a session again if the log has refused the session's end, for example because the tree's
        partition has too few replicas in sync. Otherwise the session would never expire."""
        session = self.tree.sessions.get(session_id)
        if session is not None:
            self._session_clock.start(session_id, session.timeout_ms, self._clock.monotonic_ms())

    def _expire(self) -> None:
        for session_id in self._session_clock.expired(self._clock.monotonic_ms()):
            logger.info("Expiring session 0x%x", session_id)
            self._session_clock.end(session_id)
            transaction = self.begin()
            close_session(transaction, session_id)
            client = self._clients_by_session.get(session_id)
            if client is not None:
                client.close("its session has expired")
                self.disconnected(client)
            self.commit(transaction, lambda error, ended=session_id: self._restart_if_open(ended))  # type: ignore[misc]

    # -- requests

    def _request(self, client: Client, frame: bytes) -> None:
        reader = JuteReader(frame)
        xid, op = reader.read_int(), reader.read_int()
        self._session_clock.touch(client.session_id, self._clock.monotonic_ms())
        if self._settings.is_sasl_required and op not in _AUTHENTICATIONS and not client.has_sasl_identity:
            logger.warning("/%s sent operation %d without SASL, which the listener requires", client.address, op)
            self._refuse(client, encode_reply(xid, 0, ZooKeeperError.SASL_REQUIRED))
        elif op == Op.PING:
            self._reply(client, PING_XID)
        elif client.session_id not in self.tree.sessions:
            self._reply(client, xid, ZooKeeperError.SESSION_EXPIRED)
        elif op == Op.CLOSE_SESSION:
            self._close_session(client, xid)
        elif op == Op.AUTH:
            self._authenticate(client, reader)
        elif op == Op.SASL and self._make_sasl_exchange is not None:
            self._exchange(client, xid, reader.read_buffer() or b"", self._make_sasl_exchange)
        else:
            try:
                self._operate(client, xid, op, reader)
            except OperationError as error:
                self._reply(client, xid, error.code)
            except ProtocolViolation as error:
                logger.warning("Refusing operation %d of /%s: %s", op, client.address, error)
                self._reply(client, xid, ZooKeeperError.MARSHALLING_ERROR)

    def _operate(self, client: Client, xid: int, op: int, reader: JuteReader) -> None:
        read = READS.get(op)
        if read is not None:
            self._reply(client, xid, body=read(self, client, reader))
        elif op == Op.MULTI:
            self._multi(client, xid, reader)
        elif op in WRITE_READERS:
            request = WRITE_READERS[op](reader)
            transaction = self._begin_for_client()
            body = write(transaction, op, request, client.session_id, client.identities)
            self._commit_with_reply(transaction, client, xid, body)
        else:
            self._reply(client, xid, ZooKeeperError.UNIMPLEMENTED)
            if op not in _UNSERVED:
                logger.warning("/%s sent the unknown operation %d", client.address, op)
                self.outbox.send(_Closer(client, "its operation is unknown"), b"")

    def _multi(self, client: Client, xid: int, reader: JuteReader) -> None:
        operations = read_multi(reader)
        transaction = self._begin_for_client()
        body, is_success = write_all(transaction, operations, client.session_id, client.identities)
        if not is_success:
            self._reply(client, xid, body=body)
            return
        self._commit_with_reply(transaction, client, xid, body)

    def _authenticate(self, client: Client, reader: JuteReader) -> None:
        reader.read_int()
        scheme, credentials = reader.read_string(), reader.read_buffer() or b""
        if scheme == "digest":
            identity = Identity("digest", digest_id(credentials))
            if identity not in client.identities:
                client.identities.append(identity)
        elif scheme != "ip":
            logger.warning("/%s wants to authenticate by the unknown scheme %s", client.address, scheme)
            self._refuse(client, encode_reply(AUTH_XID, self.tree.zxid, ZooKeeperError.AUTH_FAILED))
            return
        self._reply(client, AUTH_XID)

    def _exchange(self, client: Client, xid: int, token: bytes, make_exchange: MakeExchange) -> None:
        """Handles a token of SASL: authenticates the client, or sends a reply with the next token of the exchange.

        As in ZooKeeper, the replies have no zxid. A failure is answered with a null token, and ends the connection.
        """
        exchange = client.sasl_exchange = client.sasl_exchange or make_exchange()
        try:
            answer = exchange.step(token)
        except AuthenticationFailed as failure:
            logger.warning("/%s has not authenticated by SASL: %s", client.address, failure)
            is_required = self._settings.is_sasl_required
            error = ZooKeeperError.SASL_REQUIRED if is_required else ZooKeeperError.AUTH_FAILED
            self._refuse(client, encode_reply(xid, 0, error, encode_buffer(None)))
            return
        if exchange.is_complete:
            client.identities.append(Identity(SASL, exchange.principal.name))
        self.outbox.send(client, encode_reply(xid, 0, ZooKeeperError.OK, encode_buffer(answer)))

    def _refuse(self, client: Client, reply: bytes) -> None:
        """Sends `reply` as the last one, and closes the connection after it."""
        self.outbox.send(client, reply)
        self.outbox.send(_Closer(client, "its authentication has failed"), b"")

    def _reply(self, client: Client, xid: int, error: ZooKeeperError = ZooKeeperError.OK, body: bytes = b"") -> None:
        self.outbox.send(client, encode_reply(xid, self.tree.zxid, error, body))

    # -- changes

    def begin(self) -> Transaction:
        """Returns an empty transaction for changes that the server makes itself; `commit` writes it."""
        return Transaction(self.tree, self._clock.wall_ms())

    def commit(self, transaction: Transaction, on_done: OnDone | None = None) -> None:
        """Writes a transaction that `begin` has returned.

        `on_done` is called with NONE when the log has committed the transaction, or with an error.
        """
        self._commit(transaction, _no_reply, on_done)

    def read_data(self, path: str) -> bytes | None:
        """Returns the data of a node; None if there is no such node, or it has no data.

        Raises OperationError if a client that has proved no identity may not read the node.
        """
        node = self.tree.nodes.get(path)
        if node is None:
            return None
        check_permission(node.acl, READ, ())
        return node.data

    def delete_all(self, path: str) -> None:
        """Deletes a node with its descendants, if it exists. Tries again later if the log refuses the deletion."""
        if path in self.tree.nodes:
            transaction = self.begin()
            for each in [*reversed(list(self.tree.paths_below(path))), path]:
                transaction.delete(each)
            self.commit(transaction, lambda error: self._delete_again(path) if error else None)

    def _delete_again(self, path: str) -> None:
        if not self._is_stopped:
            self._timers[f"delete {path}"] = self._schedule(_DELETE_AGAIN_MS, lambda: self.delete_all(path))

    def _begin_for_client(self) -> Transaction:
        transaction = self.begin()
        transaction.acl_schemes = self._settings.acl_schemes
        if self.commands is not None:
            transaction.is_protected = self.commands.is_protected
        return transaction

    def _commit_with_reply(self, transaction: Transaction, client: Client, xid: int, body: bytes) -> None:
        if transaction.is_empty:
            self._reply(client, xid, body=body)
            return
        reply = encode_reply(xid, transaction.zxid, ZooKeeperError.OK, body)
        commands = self.commands
        writes = () if commands is None else commands.prepare(transaction)

        def done(error: Error) -> None:
            if commands is not None and error is Error.NONE:
                commands.committed(writes)

        self._commit(transaction, lambda slot: slot.add(client, reply), done if writes else None)

    def _commit(
        self, transaction: Transaction, add_reply: Callable[[Slot], None], on_done: OnDone | None = None
    ) -> None:
        """Appends the transaction's records to the log and applies the transaction to the tree.

        When the log has committed the records, the watch events are sent, then the reply that `add_reply` has added to
        the slot, and finally `on_done` is called with NONE. If the append fails, all connections are closed, and
        `on_done` is called with the error.
        """
        slot = self.outbox.reserve(steps=2)
        failures: list[Error] = []
        if on_done is not None:
            slot.on_complete = lambda: on_done(failures[0] if failures else Error.NONE)

        def on_committed(error: Error) -> None:
            if error is not Error.NONE:
                failures.append(error)
                self._append_failed(error)
            slot.step()

        def on_error(error: Error, message: str | None) -> None:
            on_committed(error)

        self._runtime.execute(
            PARTITION, lambda shard: shard.append(transaction, on_committed), ignore_response, on_error
        )
        if self._shard.drop_pending() and not failures:
            self._add_events(slot, transaction)
            add_reply(slot)
        slot.step()

    def _add_events(self, slot: Slot, transaction: Transaction) -> None:
        for event in transaction.events:
            watchers = self.watches.trigger(event)
            if watchers:
                frame = encode_event(event, transaction.zxid)
                for watcher in watchers:
                    if may_read(event.acl, watcher.identities):
                        slot.add(watcher, frame)

    def _append_failed(self, error: Error) -> None:
        """Closes all connections after a failed append, because it is not known whether the change will be committed.

        The clients connect again, set their watches again, and then find the state in the log.
        """
        logger.warning("The tree's log refused a record (%s); closing all connections", error.name)
        self._drop_clients("the tree's log refused a record")

    def delete_nodes(self, paths: Sequence[str]) -> None:
        """Deletes the nodes in `paths` that still exist and have no children, each in a transaction of its own."""
        for path in paths:
            if path in self.tree.nodes and not self.tree.child_count(path):
                transaction = self.begin()
                transaction.delete(path)
                self.commit(transaction)

    def _delete_empty_containers(self) -> None:
        """Deletes containers that have lost their last child, and nodes whose time to live has passed.

        Also deletes old notifications: nodes by which Kafka's tools notified brokers of changes.
        """
        wall_ms = self._clock.wall_ms()
        if self.commands is not None:
            self.delete_nodes(self.commands.old_notifications(wall_ms))
        self.delete_nodes([path for path in self.tree.expendable if self._is_expendable(path, wall_ms)])

    def _is_expendable(self, path: str, wall_ms: int) -> bool:
        node = self.tree.nodes[path]
        if self.tree.child_count(path):
            return False
        if node.owner == CONTAINER:
            return node.creates > 0
        return node.ttl_ms is not None and node.mtime_ms + node.ttl_ms < wall_ms


class _Closer:
    """A recipient in the outbox that closes a connection at its turn, when all earlier frames have been sent."""

    def __init__(self, client: Client, reason: str) -> None:
        self._client = client
        self._reason = reason

    def send(self, frame: bytes) -> None:
        self._client.close(self._reason)

    def hold(self, size: int) -> None:
        """Does nothing, because no frame waits."""


def _no_reply(slot: Slot) -> None:
    """Adds nothing to the slot: the `add_reply` of a change by the server itself, for which no client waits."""


def _connect_response(timeout_ms: int, session_id: int, password: bytes, knows_read_only: bool) -> bytes:
    response = encode_int(0) + encode_int(timeout_ms) + encode_long(session_id) + encode_buffer(password)
    return response + (encode_bool(False) if knows_read_only else b"")
