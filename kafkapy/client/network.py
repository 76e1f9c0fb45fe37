"""The networking of one client instance: connections to brokers, metadata, and the thread that keeps them going.

The state machines of a client (sender, fetcher, group membership) are `Task`s that hang on a network. Whoever has the
*seat* drives: reads what came, lets each task do what is due, writes what goes. That is the networking thread, or a
caller who waits (poll, flush, a future's result) and then needs no hand-over between threads, or a caller who has just
filled a batch and finds the seat free.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from kafkapy import __version__
from kafkapy._core.bytes.message import Message
from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.client.cluster import Cluster, Node, bootstrap_cluster, parse_addresses
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.connection import Connection, OnDone, PendingRequest, State, open_socket
from kafkapy.client.held_signals import HeldSignals
from kafkapy.client.metadata_updater import MetadataUpdater
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.types import Clock, SystemClock

log = logging.getLogger("kafkapy.client")

NEVER = 1 << 62
# The networking thread leaves driving to callers who come back within that time.
HANDOVER_MS = 20
LONGEST_SLEEP_MS = 60_000


class WakeupError(Exception):
    """`wakeup` of a consumer was called while, or before, it waited."""


class Task(Protocol):
    """A state machine on a network; called by whoever drives, one at a time."""

    def run(self, now_ms: int) -> int:
        """Do what is due; return the monotonic time of what is due next (NEVER: nothing)."""


class Surroundings(NamedTuple):
    """What a network stands on, beside its clock: a seam. `has_thread`: somebody drives while nobody waits."""

    connect: Callable[[Node, tuple[int, int]], socket.socket] = open_socket
    make_selector: Callable[[], selectors.BaseSelector] = selectors.DefaultSelector
    has_thread: bool = True


SYSTEM = Surroundings()


class Network:
    """Owns the connections, the picture of the cluster, and the networking thread.

    All state is touched with `seat` held only; `cluster` is an immutable picture that anybody may read. `submit` and
    everything a task does need the seat. Callbacks of responses run with it held and must not wait.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        in_flight_limit: int,
        clock: Clock | None = None,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self.clock = clock or SystemClock()
        self.config = config
        self.seat = threading.Lock()
        self.tasks: list[Task] = []
        self.in_flight_limit = in_flight_limit
        self.request_timeout_ms: int = config["request.timeout.ms"]
        self.retry_backoff = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._reconnect_backoff = ExponentialBackoff(config["reconnect.backoff.ms"], config["reconnect.backoff.max.ms"])
        self._setup_backoff = ExponentialBackoff(
            config["socket.connection.setup.timeout.ms"], config["socket.connection.setup.timeout.max.ms"]
        )
        self._addresses = parse_addresses(config["bootstrap.servers"])
        self.cluster: Cluster = bootstrap_cluster(self._addresses)
        self.metadata = MetadataUpdater(self, config)
        self.coordinators: dict[int, Node] = {}  # by connections of their own: a fetch that waits does not hold them up
        self._connections: dict[int, Connection] = {}
        self._failures: dict[int, tuple[int, int]] = {}  # node id -> (failed attempts, not before)
        self._last_failure = ""
        self._surroundings = surroundings
        self._selector = surroundings.make_selector()
        self._registered: dict[Connection, int] = {}  # -> events
        self._wake_reader, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._unparked = threading.Event()
        self._visitors = 0
        self._left_ms = -HANDOVER_MS
        self._sleeps_until_ms = NEVER
        self._driver = 0
        self._is_watching = False  # the thread waits for sockets
        self._closed = False
        self._is_interrupted = False
        self._is_undisturbed = False
        self._thread = threading.Thread(target=self._drive, name=f"kafkapy-{config['client.id']}", daemon=True)

    def start(self) -> None:
        """Starts the networking thread."""
        if self._surroundings.has_thread:
            self._thread.start()

    # What tasks ask for

    def submit(
        self,
        node_id: int,
        key: ApiKey,
        build: Callable[[int], Message],
        on_done: OnDone,
        *,
        highest: int | None = None,
        expects_response: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """Sends a request to a broker; `on_done(response, version, error)` is called once, perhaps at once."""
        deadline = self.clock.monotonic_ms() + (self.request_timeout_ms if timeout_ms is None else timeout_ms)
        request = PendingRequest(key, build, on_done, deadline, highest=highest, expects_response=expects_response)
        connection = self._connection(node_id)
        if connection is None:
            on_done(None, -1, ApiError(Error.NETWORK_EXCEPTION, f"Broker {node_id} is not available"))
        else:
            connection.submit(request)

    def is_ready(self, node_id: int) -> bool:
        """Whether a request could be sent now; begins connecting if that is what it takes."""
        connection = self._connection(node_id)
        return connection is not None and connection.is_ready(self.in_flight_limit)

    def is_congested(self) -> bool:
        """Whether a connection has so much to send that it takes no more before the end of the turn."""
        return not all(connection.has_room for connection in self._connections.values())

    def ready_from_ms(self, node_id: int) -> int:
        """When a broker that is not ready may be tried again; NEVER if an event will tell."""
        if node_id in self._connections:
            return NEVER
        return max(self._failures.get(node_id, (0, 0))[1], self.clock.monotonic_ms() + 1)

    def versions(self, node_id: int) -> dict[int, tuple[int, int]]:
        """The APIs that a connected broker serves; empty if it is not connected."""
        connection = self._connections.get(node_id)
        return {} if connection is None else connection.versions

    def feature_level(self, node_id: int, feature: str) -> int | None:
        """The level of a feature of the cluster, as a connected broker knows it (0: not in use); None if the broker is
        not connected."""
        connection = self._connections.get(node_id)
        return None if connection is None or not connection.versions else connection.features.get(feature, 0)

    def least_loaded(self) -> int | None:
        """The best broker for a request that any can answer; None while none can be reached."""
        best: tuple[int, int] | None = None
        now = self.clock.monotonic_ms()
        for node_id in self.cluster.nodes:
            connection = self._connections.get(node_id)
            if connection is not None and not connection.is_closed:
                load = connection.in_flight + (0 if connection.state is State.READY else 1000)
            elif self._failures.get(node_id, (0, 0))[1] <= now:
                load = 2000
            else:
                continue
            if best is None or load < best[0]:
                best = load, node_id
        return None if best is None else best[1]

    def reachable_from_ms(self) -> int:
        """When the first broker may be connected to again."""
        return min((self._failures.get(node_id, (0, 0))[1] for node_id in self.cluster.nodes), default=NEVER)

    def all_failed(self) -> bool:
        """Whether no known broker could be reached when last tried."""
        return all(node_id in self._failures for node_id in self.cluster.nodes)

    def timed_out(self, message: str) -> TimeoutError:
        """The error for somebody who has waited in vain; it says so if no broker can be reached."""
        if self._last_failure and self.all_failed():
            message += f" No broker can be reached ({self._last_failure})."
        return TimeoutError(message)

    def rebootstrap(self) -> None:
        """Forgets the brokers and begins again at bootstrap.servers; topics stay until they are told anew."""
        log.warning("No known broker can be reached: starting again at bootstrap.servers")
        fresh = bootstrap_cluster(self._addresses)
        for connection in list(self._connections.values()):
            connection.close(ApiError(Error.NETWORK_EXCEPTION, "Starting again at bootstrap.servers"))
        self._forget_closed()
        self.cluster = fresh._replace(topics=self.cluster.topics)
        self._failures.clear()

    # Driving

    def wait_until(self, is_done: Callable[[], bool], timeout_s: float | None, *, poll_ms: int = NEVER) -> bool:
        """Drives until `is_done()`, asked with the seat held, or the time is over; returns whether it is done. It is
        asked after everything that happens, and every `poll_ms`. WakeupError after `interrupt`, unless it is done."""
        if self._driver == threading.get_ident():
            raise RuntimeError("a callback must not wait for the client that calls it")
        end = NEVER if timeout_s is None else self.clock.monotonic_ms() + int(timeout_s * 1000)
        with self.seat:
            self._visitors += 1
        try:
            while True:
                with HeldSignals(), self.seat:
                    due = self._step()
                    if is_done():
                        return True
                self.raise_if_interrupted()
                now = self.clock.monotonic_ms()
                if now >= end or self._closed:
                    return False
                self._select(min(due, end, now + poll_ms) - now)
        finally:
            with HeldSignals(), self.seat:
                self._visitors -= 1
                self._left_ms = self.clock.monotonic_ms()
                self._take_ahead()

    def try_drive(self) -> None:
        """Drives one turn if nobody else does."""
        with HeldSignals():
            if self.seat.acquire(blocking=False):
                try:
                    self._step(looks_at_idle=False)
                    self._take_ahead()
                finally:
                    self.seat.release()

    def wake_for(self, due_ms: int) -> None:
        """Sees to it that somebody drives at that time. Any thread, without the seat."""
        if self._driver == threading.get_ident():
            return
        if self._sleeps_until_ms > due_ms:
            self._sleeps_until_ms = due_ms
            self._left_ms = -HANDOVER_MS
            self._unparked.set()
            self._wake()

    def wake_waiters(self) -> None:
        """Makes whoever waits look again. Any thread."""
        self._unparked.set()
        self._wake()

    def interrupt(self) -> None:
        """Makes who waits, or else who waits next, raise WakeupError. Any thread."""
        self._is_interrupted = True
        self.wake_waiters()

    def forget_interrupt(self) -> None:
        """After `interrupt`: nobody is to raise any more."""
        self._is_interrupted = False

    def raise_if_interrupted(self) -> None:
        """WakeupError after `interrupt`, once."""
        if self._is_interrupted and not self._is_undisturbed:
            self._is_interrupted = False
            raise WakeupError

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Waiting within it is not interrupted; whoever waits next is."""
        before, self._is_undisturbed = self._is_undisturbed, True
        try:
            yield
        finally:
            self._is_undisturbed = before

    def close(self) -> None:
        """Ends the thread and all connections. May be called again."""
        with self.seat:
            if self._closed:
                return
            self._closed = True
        self._unparked.set()
        self._wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        with self.seat:
            for connection in list(self._connections.values()):
                connection.close(ApiError(Error.NETWORK_EXCEPTION, "The client is closed"))
            self._selector.close()
            os.close(self._wake_reader)
            os.close(self._wake_writer)

    def _wake(self) -> None:
        try:
            os.write(self._wake_writer, b"w")
        except BlockingIOError:
            return  # the pipe is full of wake-ups
        except OSError:
            if not self._closed:
                raise

    def is_closed(self) -> bool:
        """Whether `close` has been called; it may be by another thread at any moment."""
        return self._closed

    def _has_visitors(self) -> bool:
        return self._visitors > 0

    def _drive(self) -> None:
        while not self.is_closed():
            if self._has_visitors() or self.clock.monotonic_ms() - self._left_ms < HANDOVER_MS:
                self._unparked.wait(HANDOVER_MS / 1000)
                self._unparked.clear()
                continue
            with self.seat:
                if self.is_closed():
                    return
                due = self._step()
                self._sleeps_until_ms = due
                self._is_watching = True
            self._select(due - self.clock.monotonic_ms())
            self._is_watching = False
            if self._has_visitors():
                self._wake()  # what woke this thread was meant for the one that waits

    def _select(self, pause_ms: int) -> None:
        for key, _ in self._selector.select(min(max(pause_ms, 0), LONGEST_SLEEP_MS) / 1000):
            if key.fd == self._wake_reader:
                try:
                    os.read(self._wake_reader, 4096)
                except BlockingIOError:
                    continue  # another waiter has read it

    def _step(self, *, looks_at_idle: bool = True) -> int:
        """One turn, with the seat held; returns when the next is due. Connections without requests are only looked at
        after waiting: it is a system call for each."""
        self._driver = threading.get_ident()
        try:
            now = self.clock.monotonic_ms()
            for connection in list(self._connections.values()):
                connection.step(now)
            self._forget_closed()
            if looks_at_idle:
                self._look_at_idle()
            due = self.metadata.run(now)
            for task in self.tasks:
                due = min(due, task.run(now))
            for connection in list(self._connections.values()):
                connection.flush()
                deadline = connection.next_deadline_ms()
                if deadline is not None:
                    due = min(due, deadline)
            self._forget_closed()
            self._watch()
            return due
        except Exception:
            log.exception("The networking of a client failed; it goes on")
            return self.clock.monotonic_ms() + 1000
        finally:
            self._driver = 0

    def _take_ahead(self) -> None:
        """Whoever drives goes away; if nobody else waits for the sockets, answers come in meanwhile."""
        if not self._visitors and not self._is_watching:
            for connection in self._connections.values():
                connection.take_ahead()

    def _watch(self) -> None:
        """Tells the selector what each connection waits for."""
        for connection in self._connections.values():
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_to_write else 0)
            known = self._registered.get(connection)
            if known is None:
                self._selector.register(connection.socket, events)
            elif known != events:
                self._selector.modify(connection.socket, events)
            else:
                continue
            self._registered[connection] = events

    def _connection(self, node_id: int) -> Connection | None:
        connection = self._connections.get(node_id)
        node = self.coordinators.get(node_id) or self.cluster.nodes.get(node_id)
        if (
            connection is not None
            and not connection.is_closed
            and (node is None or connection.node is node or connection.node[:3] == node[:3])
        ):
            return connection
        if connection is not None:
            connection.close(ApiError(Error.NETWORK_EXCEPTION, "The broker has another address"))
            self._forget_closed()
        if node is None:
            return None
        now = self.clock.monotonic_ms()
        attempts, not_before = self._failures.get(node_id, (0, 0))
        if now < not_before:
            return None
        return self._connect(node, attempts, now)

    def _connect(self, node: Node, attempts: int, now: int) -> Connection | None:
        config = self.config
        try:
            sizes = self._buffer_bytes("send.buffer.bytes"), self._buffer_bytes("receive.buffer.bytes")
            opened = self._surroundings.connect(node, sizes)
        except OSError as error:
            self._count_failure(node, error)
            return None
        connection = Connection(
            node,
            config["client.id"],
            __version__,
            now,
            opened=opened,
            setup_ms=self._setup_backoff.pause_ms(attempts),
            on_close=self._unregister,
        )
        self._connections[node.node_id] = connection
        return connection

    def _buffer_bytes(self, key: str) -> int:
        """Without a wish the system decides: Apache Kafka's defaults hold fast networks back."""
        size: int = self.config[key] if self.config.is_set(key) else -1
        return size

    def _count_failure(self, node: Node, error: Exception | None) -> None:
        attempts = self._failures.get(node.node_id, (0, 0))[0]
        pause = self._reconnect_backoff.pause_ms(attempts)
        self._failures[node.node_id] = (attempts + 1, self.clock.monotonic_ms() + pause)
        self._last_failure = f"{node.host}:{node.port}: {error}"
        level = logging.WARNING if attempts == 0 else logging.DEBUG
        log.log(level, "Broker %s (%s:%s): %s", node.node_id, node.host, node.port, error)

    def _forget_closed(self) -> None:
        for node_id, connection in list(self._connections.items()):
            if connection.is_closed:
                del self._connections[node_id]
                self._count_failure(connection.node, connection.failure)
                self.metadata.request_update()
            elif self._failures and connection.state is State.READY:
                self._failures.pop(node_id, None)

    def _look_at_idle(self) -> None:
        """Lets go of connections without requests that the broker has closed, or that have not been used for long."""
        now = self.clock.monotonic_ms()
        for connection in list(self._connections.values()):
            if connection.in_flight:
                continue
            connection.notice_end()
            if 0 <= self.config["connections.max.idle.ms"] < now - connection.last_used_ms:
                connection.close(ApiError(Error.NETWORK_EXCEPTION, "The connection was idle"))
        self._forget_closed()

    def _unregister(self, connection: Connection) -> None:
        if self._registered.pop(connection, None) is not None:
            self._selector.unregister(connection.socket)
