"""The network loop of one client: its thread, its lock, and the steps that its callers run while they wait.

The state machines of a client (sender, fetcher, group membership) are `Task`s of its network. The thread that holds
`Network.lock` runs the next *step*: it reads what has arrived, runs every task, and writes what the tasks have queued.
That thread is the networking thread, a caller that waits (`poll`, `flush`, the result of a future), or a caller that
has just filled a batch and finds the lock free. A caller that waits runs the steps itself, so that it need not be woken
by another thread.
"""

from __future__ import annotations

import logging
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from kafkapy.client.broker_connections import NEVER, BrokerConnections
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.environment import SYSTEM, Environment
from kafkapy.client.errors import WakeupError
from kafkapy.client.held_signals import HeldSignals
from kafkapy.client.metadata_updater import MetadataUpdater
from kafkapy.errors import ApiError, Error
from kafkapy.wake_pipe import WakePipe

__all__ = ["NEVER", "Network", "Task"]

log = logging.getLogger("kafkapy.client")

# The networking thread leaves the steps to callers that wait again within this time.
HANDOVER_MS = 20
LONGEST_SLEEP_MS = 60_000
# Waits for sockets that were not counted yet. Each step counts them, so that there is one for each waiting thread.
MOST_UNCOUNTED_WAITS = 1000


class Task(Protocol):
    """A state machine that the network runs in every step (pass of its loop), always with `Network.lock` held."""

    def run(self, monotonic_ms: int) -> int:
        """Performs the work that is due; returns the monotonic time (ms) at which to run again.

        NEVER means that the task needs to run only after another event.
        """


class Network(BrokerConnections):
    """The network of one client: the connections to the brokers, the metadata, and the networking thread.

    All state is protected by `lock`: tasks run with it held, and so do the callbacks of responses, which must not wait.
    Other threads take the lock before they call `submit` or change a task's state. `cluster` may be read without it.
    """

    def __init__(self, config: ClientConfig, *, in_flight_limit: int, environment: Environment = SYSTEM) -> None:
        super().__init__(config, in_flight_limit=in_flight_limit, environment=environment)
        self.lock = threading.Lock()
        self.tasks: list[Task] = []
        self.metadata = MetadataUpdater(self, config)
        self._wake_pipe = WakePipe()
        self._selector.register(self._wake_pipe, selectors.EVENT_READ)
        self._thread_wanted = threading.Event()
        self._waiting_callers = 0
        self._last_caller_left_ms = -HANDOVER_MS
        self._thread_sleeps_until_ms = NEVER
        # The time at which `wake_for` wants a step that has not begun, and the time by which one will begin anyhow.
        self._wanted_ms = NEVER
        self._next_step_ms = NEVER
        self._wanted_lock = threading.Lock()
        self._stepping_thread = 0
        self._uncounted_waits_ns: deque[int] = deque(maxlen=MOST_UNCOUNTED_WAITS)
        self._thread_is_selecting = False
        self._closed = False
        self._is_interrupted = False
        self._is_uninterruptible = False
        self._thread = threading.Thread(target=self._run_thread, name=f"kafkapy-{config['client.id']}", daemon=True)

    def start(self) -> None:
        """Starts the networking thread, unless the network has been configured to work without one
        (`Environment.has_thread`).
        """
        if self._environment.has_thread:
            self._thread.start()

    def wait_until(self, is_done: Callable[[], bool], timeout_s: float | None, *, poll_ms: int = NEVER) -> bool:
        """Runs steps until `is_done()` or until `timeout_s` seconds have passed; returns whether it is done. Blocks.

        `is_done` is called with the lock held, after every step and at least every `poll_ms`. If it returns False,
        raises WakeupError after `interrupt`, and AuthenticationError once for each connection that has failed to
        authenticate. If `interrupt` was called before this method, `is_done` is called first, and no step is run.
        Raises RuntimeError if it is called within a callback of this client, since callbacks must not wait.
        """
        if self._stepping_thread == threading.get_ident():
            raise RuntimeError("a callback must not wait for the client that calls it")
        end = NEVER if timeout_s is None else self.clock.monotonic_ms() + int(timeout_s * 1000)
        with self.lock:
            self._waiting_callers += 1
            if self._waiting_callers > 1:
                self._wake_pipe.wake()  # so that the other callers check their conditions every HANDOVER_MS from now on
        try:
            if self._is_interrupted:
                with HeldSignals(), self.lock:
                    if is_done():
                        return True
                self.raise_if_interrupted()
            while True:
                with HeldSignals(), self.lock:
                    if self._closed:  # by another thread
                        return is_done()
                    due = self._step_before_sleep()
                    self.has_new_requests = False
                    if is_done():
                        return True
                    if self.has_new_requests:
                        due = 0  # the next step sends what `is_done` has submitted
                self.raise_if_interrupted()
                now = self.clock.monotonic_ms()
                if now >= end or self._closed:
                    return False
                # Another waiting caller may read the event that this one waits for, and leave without waking it.
                longest_ms = poll_ms if self._waiting_callers == 1 else min(poll_ms, HANDOVER_MS)
                self._select(min(due, end, now + longest_ms) - now)
        finally:
            with HeldSignals(), self.lock:
                self._waiting_callers -= 1
                self._last_caller_left_ms = self.clock.monotonic_ms()
                self._next_step_ms = self._next_step_of_others()
                self._read_ahead()

    def try_step(self) -> None:
        """Runs one step if no other thread holds the lock. Does not block."""
        with HeldSignals():
            if self.lock.acquire(blocking=False):
                try:
                    due = self._step(closes_idle=False)
                    self._read_ahead()
                    if self._waiting_callers:
                        self._wake_pipe.wake()  # the step may have read the event that a caller waits for
                    else:
                        self._wake_by(min(due, self._wanted_ms))
                finally:
                    self.lock.release()

    def wake_for(self, due_ms: int) -> None:
        """Ensures that a step begins at the monotonic time `due_ms` or earlier.

        Any thread may call this without the lock. If a call of `wait_until` has just ended, the step may be later: the
        networking thread waits HANDOVER_MS before it runs its next step. A step that is in progress does not count, as
        it may have read the caller's state before the caller changed it. A thread that is about to sleep writes
        `_next_step_ms` and then reads `_wanted_ms`; this function writes `_wanted_ms` and then reads `_next_step_ms`,
        so that at least one of the two threads sees what the other wrote.
        """
        with self._wanted_lock:
            self._wanted_ms = min(self._wanted_ms, due_ms)
        if self._stepping_thread != threading.get_ident():
            self._wake_by(due_ms)

    def wake_waiters(self) -> None:
        """Makes the callers that wait check their condition again. May be called by any thread."""
        self._thread_wanted.set()
        self._wake_pipe.wake()

    def interrupt(self) -> None:
        """Makes the call that waits now, or else the next call that waits, raise WakeupError.

        May be called by any thread.
        """
        self._is_interrupted = True
        self.wake_waiters()

    def forget_interrupt(self) -> None:
        """Cancels an `interrupt` for which no call has raised WakeupError yet."""
        self._is_interrupted = False

    def raise_if_interrupted(self) -> None:
        """Raises WakeupError once after `interrupt`, and AuthenticationError once after a failed authentication."""
        if self._is_interrupted and not self._is_uninterruptible:
            self._is_interrupted = False
            raise WakeupError
        if self.authentication_error is not None and not self._is_uninterruptible:
            error, self.authentication_error = self.authentication_error, None
            raise error

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """Returns a context in which waits ignore `interrupt` and failed authentications.

        The first wait after the context raises the error instead.
        """
        before, self._is_uninterruptible = self._is_uninterruptible, True
        try:
            yield
        finally:
            self._is_uninterruptible = before

    def close(self) -> None:
        """Ends the thread and all connections; requests in flight fail with NETWORK_EXCEPTION. May be called again."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
        self._thread_wanted.set()
        self._wake_pipe.wake()
        if self._thread.is_alive() and self._thread.ident != threading.get_ident():
            self._thread.join()
        with self.lock:
            for connection in list(self._connections.values()):
                connection.close(ApiError(Error.NETWORK_EXCEPTION, "The client is closed"))
            if self._security is not None:
                self._security.close()
            self._selector.close()
            self._wake_pipe.close()

    def metadata_age_s(self) -> float:
        """Returns the seconds since the last metadata response, or since the client was made."""
        return (self.clock.monotonic_ms() - self.metadata.updated_ms) / 1000

    def is_closed(self) -> bool:
        """Returns whether `close` has been called, which another thread may do at any moment."""
        return self._closed

    def _wake_by(self, due_ms: int) -> None:
        """Wakes the threads that sleep, unless one of them wakes at the monotonic time `due_ms` or earlier."""
        if self._next_step_ms > due_ms:
            self._next_step_ms = due_ms
            self._last_caller_left_ms = -HANDOVER_MS
            self._thread_wanted.set()
            self._wake_pipe.wake()

    def _next_step_of_others(self) -> int:
        """Returns the monotonic time (ms) by which another thread runs a step after this caller has stopped waiting.

        If the networking thread sleeps, this is the end of its sleep. Otherwise the result is the present time, but
        that thread runs the step up to HANDOVER_MS later. While other callers wait, the result is NEVER, because it is
        unknown how long they sleep; `wake_for` then wakes them. Called with the lock held.
        """
        if self._waiting_callers:
            return NEVER  # it is unknown how long the others sleep
        if self._thread_is_selecting:
            return self._thread_sleeps_until_ms
        return self._last_caller_left_ms  # the networking thread makes a step HANDOVER_MS later

    def _has_waiting_callers(self) -> bool:
        return self._waiting_callers > 0

    def _run_thread(self) -> None:
        while not self.is_closed():
            if self._has_waiting_callers() or self.clock.monotonic_ms() - self._last_caller_left_ms < HANDOVER_MS:
                self._thread_wanted.wait(HANDOVER_MS / 1000)
                self._thread_wanted.clear()
                continue
            with self.lock:
                if self.is_closed():
                    return
                due = self._step_before_sleep()
                self._thread_sleeps_until_ms = due
                self._thread_is_selecting = True
            self._select(due - self.clock.monotonic_ms())
            self._thread_is_selecting = False
            if self._has_waiting_callers():
                self._wake_pipe.wake()  # the event that ended this thread's select was meant for a caller

    def _select(self, pause_ms: int) -> None:
        began_ns = time.monotonic_ns()
        ready = self._selector.select(min(max(pause_ms, 0), LONGEST_SLEEP_MS) / 1000)
        self._uncounted_waits_ns.append(time.monotonic_ns() - began_ns)
        for key, _ in ready:
            if key.fileobj is self._wake_pipe:
                self._wake_pipe.clear()

    def _step_before_sleep(self) -> int:
        """Runs one step with the lock held; returns the monotonic time (ms) until which the thread may sleep.

        That is when the next step is due, or the earlier time that a call of `wake_for` has asked for.
        """
        due = self._step()
        self._next_step_ms = due
        return min(due, self._wanted_ms)

    def _step(self, *, closes_idle: bool = True) -> int:
        """Runs one step with the lock held; returns the monotonic time (ms) at which the next step is due.

        With `closes_idle`, connections without requests are closed if the broker has closed them or they were idle for
        too long. `try_step` does not check them, because each check costs a system call.
        """
        began_ns = time.monotonic_ns()
        self._stepping_thread = threading.get_ident()
        with self._wanted_lock:
            self._wanted_ms = NEVER  # this step sees what was changed before
        while self._uncounted_waits_ns:
            self.metrics.waits.add(self._uncounted_waits_ns.popleft())
        try:
            now = self.clock.monotonic_ms()
            for connection in list(self._connections.values()):
                connection.step(now)
            self._remove_closed()
            if closes_idle:
                self._close_idle()
            if self.has_lost_connection:
                self.has_lost_connection = False
                self.metadata.request_update()
            due = self.metadata.run(now)
            for task in self.tasks:
                due = min(due, task.run(now))
            for connection in list(self._connections.values()):
                connection.flush()
                deadline = connection.next_deadline_ms()
                if deadline is not None:
                    due = min(due, deadline)
            self._remove_closed()
            self._watch_sockets()
            return due
        except Exception:
            log.exception("A step of the client's network loop failed; the loop goes on in a second")
            return self.clock.monotonic_ms() + 1000
        finally:
            self._stepping_thread = 0
            self.metrics.steps.add(time.monotonic_ns() - began_ns)

    def _read_ahead(self) -> None:
        """Calls `read_ahead` of each connection, so that the kernel goes on receiving fetch responses until the next
        step.

        Does nothing if another thread waits for the sockets, because that thread reads what arrives at once.
        """
        if not self._waiting_callers and not self._thread_is_selecting:
            for connection in self._connections.values():
                connection.read_ahead()
