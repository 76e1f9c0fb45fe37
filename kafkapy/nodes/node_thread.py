"""The thread with the connections to other nodes: one selector loop, which starts when it is first used.

Raft, the channels to the active controller and the transaction coordinator share this thread. While the thread runs a
callback, it serves none of its connections. A callback should therefore do no work itself, but post the work to the
thread that owns the data.
"""

from __future__ import annotations

import heapq
import logging
import selectors
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from kafkapy.client.connection import Connection
from kafkapy.client.connection_security import ConnectionSecurity
from kafkapy.client.environment import SYSTEM, Environment
from kafkapy.named_tuple import NamedTuple
from kafkapy.wake_pipe import WakePipe

logger = logging.getLogger("kafkapy.nodes")

NEVER = 1 << 62  # a monotonic time that is never reached
LONGEST_PAUSE_MS = 60_000
STOP_WAIT_S = 5.0


class NodeSecurity(NamedTuple):
    """The security of connections to the brokers of the cluster and to its controllers.

    Each of the two is None if the connections use PLAINTEXT.
    """

    brokers: ConnectionSecurity | None = None
    controllers: ConnectionSecurity | None = None


class Timer:
    """A function that the node thread calls at a set time. Any thread may cancel the call."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Prevents the call unless it has begun."""
        self.callback = None


class Channel(Protocol):
    """The methods of a channel (a connection to another node) that the loop of the node thread calls.

    `due_ms` is a monotonic time, which the channel sets. The node thread calls `step` at this time, or earlier if the
    connection's socket becomes readable or writable.
    """

    due_ms: int

    def step(self, monotonic_ms: int) -> None:
        """Reads, writes and handles timeouts as far as possible now.

        Sets `due_ms` to the time at which the node thread has to call this method again. The node thread also calls it
        whenever the connection's socket becomes readable or writable.
        """
        ...

    def shut(self) -> None:
        """Closes the connection and fails all requests; `step` is not called again."""
        ...

    def fail(self, error: Exception) -> None:
        """Closes the connection and fails all requests, because `step` has raised `error`. Later requests are sent on a
        new connection."""
        ...


class NodeThread:
    """Owns the thread, its selector and its timers.

    `post`, `schedule` and `stop` may be called from any thread; the other methods are called by channels on the node
    thread. `environment` provides the clock and the selector. If its `has_thread` is False, as in some tests, no thread
    is started; the test then calls `turn` itself, once for each pass of the loop.
    """

    def __init__(
        self, name: str = "kafka-nodes", environment: Environment = SYSTEM, security: NodeSecurity | None = None
    ) -> None:
        self.environment = environment
        self.security = security or NodeSecurity()
        self.clock = environment.clock
        self._lock = threading.Lock()
        self._posted: deque[Callable[[], object]] = deque()
        self._timers: list[tuple[int, int, Timer]] = []
        self._timer_count = 0
        self._channels: set[Channel] = set()
        self._events: dict[Connection, int] = {}  # connection -> registered selector events
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._selector: selectors.BaseSelector | None = None
        self._wake_pipe: WakePipe | None = None
        self._is_selecting = False
        self._is_stopped = False

    @property
    def is_stopped(self) -> bool:
        """True after `stop`. Any thread may read it."""
        return self._is_stopped

    def post(self, work: Callable[[], object]) -> bool:
        """Makes the node thread call `work()`, in the order of the calls of `post`, and returns True. After `stop`,
        returns False and does not call `work`.

        The first call of `post` starts the thread.
        """
        with self._lock:
            if self._is_stopped:
                return False
            if self._selector is None:
                self._open()
            self._posted.append(work)
            if self._is_selecting:
                self._is_selecting = False
                self._wake()
        return True

    def schedule(self, delay_ms: int, callback: Callable[[], object]) -> Timer:
        """Calls `callback` on the node thread after `delay_ms`, unless the timer is cancelled or the thread stops."""
        timer = Timer(callback)
        due_ms = self.clock.monotonic_ms() + delay_ms
        self.post(lambda: self._add_timer(due_ms, timer))
        return timer

    def stop(self) -> None:
        """Runs the work that was posted before, fails the requests of all channels and ends the thread. Further calls
        do nothing."""
        with self._lock:
            is_first = not self._is_stopped
            self._is_stopped = True
            is_open = self._selector is not None
            if is_open and is_first:
                self._wake()
        if not is_open or threading.current_thread() is self._thread:
            return
        if self._thread.ident is not None:  # has been started, and closes the descriptors, perhaps before this line
            self._thread.join(STOP_WAIT_S)
        elif is_first:
            self._run_posted()
            self._close()

    def add(self, channel: Channel) -> None:
        """Adds a channel, whose `step` is called from now on when it is due."""
        self._channels.add(channel)

    def remove(self, channel: Channel) -> None:
        """Removes a channel, whose `step` is not called any more."""
        self._channels.discard(channel)

    def watch(self, channel: Channel, connection: Connection) -> None:
        """Registers the connection's socket with the selector for the events that the connection needs; at an event,
        `channel.step` is called."""
        assert self._selector is not None
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_to_write else 0)
        known = self._events.get(connection)
        if known is None:
            self._selector.register(connection.socket, events, channel)
        elif known != events:
            self._selector.modify(connection.socket, events, channel)
        self._events[connection] = events

    def unwatch(self, connection: Connection) -> None:
        """Ends the registration of the connection's socket. Called before the socket is closed."""
        if self._events.pop(connection, None) is not None:
            assert self._selector is not None
            self._selector.unregister(connection.socket)

    def turn(self) -> bool:
        """Makes one pass of the loop: runs posted work, due timers and due channels, then waits for the next event.
        Returns False after `stop`, otherwise True."""
        is_stopped = self._run_posted()
        monotonic_ms = self.clock.monotonic_ms()
        while self._timers and self._timers[0][0] <= monotonic_ms:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                self._call(timer.callback)
        for channel in [each for each in self._channels if each.due_ms <= monotonic_ms]:
            self._step(channel, monotonic_ms)
        if is_stopped:
            return False
        due_ms = min((each.due_ms for each in self._channels), default=NEVER)
        if self._timers:
            due_ms = min(due_ms, self._timers[0][0])
        self._select(due_ms)
        return True

    def _open(self) -> None:
        self._selector = self.environment.make_selector()
        self._wake_pipe = WakePipe()
        self._selector.register(self._wake_pipe, selectors.EVENT_READ)
        if self.environment.has_thread:
            self._thread.start()

    def _run(self) -> None:
        try:
            while self.turn():
                pass
        finally:
            self._close()

    def _close(self) -> None:
        for channel in list(self._channels):
            self._call(channel.shut)
        self._channels.clear()
        assert self._selector is not None and self._wake_pipe is not None
        self._selector.close()
        self._wake_pipe.close()

    def _wake(self) -> None:
        assert self._wake_pipe is not None
        self._wake_pipe.wake()

    def _run_posted(self) -> bool:
        """Runs the posted work. Returns True if `stop` has been called."""
        with self._lock:
            posted, self._posted = self._posted, deque()
            is_stopped = self._is_stopped
        for work in posted:
            self._call(work)
        return is_stopped

    def _add_timer(self, due_ms: int, timer: Timer) -> None:
        self._timer_count += 1
        heapq.heappush(self._timers, (due_ms, self._timer_count, timer))

    def _select(self, due_ms: int) -> None:
        """Waits for an event on a connection, but not longer than until the monotonic time `due_ms`, and calls `step`
        of the channels whose connections have events."""
        assert self._selector is not None and self._wake_pipe is not None
        with self._lock:
            self._is_selecting = not self._posted and not self._is_stopped
            is_waiting = self._is_selecting
        pause_ms = min(max(due_ms - self.clock.monotonic_ms(), 0), LONGEST_PAUSE_MS) if is_waiting else 0
        ready = self._selector.select(pause_ms / 1000)
        with self._lock:
            self._is_selecting = False
        monotonic_ms = self.clock.monotonic_ms()
        for key, _ in ready:
            if key.data is None:
                self._wake_pipe.clear()
            else:
                self._step(key.data, monotonic_ms)

    def _step(self, channel: Channel, monotonic_ms: int) -> None:
        try:
            channel.step(monotonic_ms)
        except Exception as error:
            failure = error
            logger.exception("A channel to another node failed; its requests fail")
            self._call(lambda: channel.fail(failure))

    @staticmethod
    def _call(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:
            logger.exception("Uncaught error on the thread for requests to other nodes")
