"""A channel for requests of one kind to the active controller, also when the active controller changes.

After a lost connection or the error NOT_CONTROLLER the channel looks up the active controller again, and sends the
failed request again before the requests that wait. Forwarding, heartbeats, AlterPartition and directory assignments
have a channel each, so that they do not wait for each other (Kafka's NodeToControllerChannelManager).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from kafkapy.client.api_versions import Versions
from kafkapy.client.connection import OnDone
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.nodes.node_channel import MAX_QUEUED_REQUESTS, Body, Destination, NodeChannel, OpenRequests
from kafkapy.nodes.node_thread import NEVER, NodeThread, Timer
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.response_errors import part_with_error

logger = logging.getLogger("kafka.server.NodeToControllerRequestThread")

RETRY_MS = 50
# Errors after which the request may not have been handled, or not by the active controller.
_LOST = frozenset({Error.NETWORK_EXCEPTION, Error.REQUEST_TIMED_OUT, Error.NOT_CONTROLLER})

# Returns the address of the active controller's first controller listener, or None while the active controller is not
# known. Any thread may call it.
FindController = Callable[[], Destination | None]


class _Request(NamedTuple):
    body: Body
    key: ApiKey
    on_done: OnDone
    deadline_ms: int
    highest: int | None


class ControllerChannel:
    """Owns a queue of requests and the connection to the active controller. One request is in flight.

    `send`, `controller_changed` and `close` may be called from any thread; callbacks run on the node thread, the thread
    with the connections to other nodes (`NodeThread`).
    """

    def __init__(
        self,
        thread: NodeThread,
        find_controller: FindController,
        *,
        client_id: str,
        request_timeout_ms: int,
        retry_timeout_ms: int | None,
        queue_limit: int = MAX_QUEUED_REQUESTS,
    ) -> None:
        """Creates the channel. `find_controller()` returns the address of the active controller, or None if it is not
        known.

        A request without a response within `request_timeout_ms` is sent again on a new connection. It fails with
        REQUEST_TIMED_OUT after `retry_timeout_ms` in all; if that is None, it is repeated without limit. At most
        `queue_limit` requests are open.
        """
        self._thread = thread
        self._find_controller = find_controller
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._retry_timeout_ms = retry_timeout_ms
        self._open_requests = OpenRequests(queue_limit, "the controller")
        self._queue: deque[_Request] = deque()
        self._in_flight: _Request | None = None
        self._channel: NodeChannel | None = None
        self._refused_by: Destination | None = None  # the node that said that it is not the controller
        self._retry: Timer | None = None
        self._is_closed = False
        self.due_ms = NEVER  # this channel has timers and no socket of its own
        self._is_added = False

    @property
    def versions(self) -> Versions:
        """The API versions that the last connected controller serves, by API; empty before the first connection. Any
        thread."""
        channel = self._channel
        return {} if channel is None else channel.versions

    def send(self, body: Body, key: ApiKey, on_done: OnDone, *, highest: int | None = None) -> None:
        """Sends a request after all earlier requests of the channel, in API version `highest` at most; None means no
        limit.

        `on_done(response, version, error)` is called exactly once, on the node thread, or before `send` returns if
        `queue_limit` requests are open already or the node thread has stopped. `version` is the API version of the
        response. `error` is None if the request was answered; otherwise it is an ApiError: REQUEST_TIMED_OUT,
        UNSUPPORTED_VERSION, or NETWORK_EXCEPTION if the channel was closed. After a response with the error
        NOT_CONTROLLER the request is sent again; if the channel is being closed, `error` is NOT_CONTROLLER instead.
        """
        finish = self._open_requests.begin(on_done)
        if finish is None:
            on_done(None, -1, ApiError(Error.REQUEST_TIMED_OUT, "Too many requests wait for the controller."))
            return
        timeout_ms = self._retry_timeout_ms
        deadline_ms = NEVER if timeout_ms is None else self._thread.clock.monotonic_ms() + timeout_ms
        request = _Request(body, key, finish, deadline_ms, highest)
        if not self._thread.post(lambda: self._enqueue(request)):
            request.on_done(None, -1, _closed())

    def controller_changed(self) -> None:
        """Looks up the active controller again at once. Called when the active controller has changed or has become
        known."""
        self._thread.post(self._follow_controller)

    def close(self) -> None:
        """Closes the channel: all requests, also later ones, fail with NETWORK_EXCEPTION."""
        self._thread.post(self.shut)

    # -- node thread

    def _enqueue(self, request: _Request) -> None:
        if self._is_closed:
            request.on_done(None, -1, _closed())
            return
        if not self._is_added:
            self._is_added = True
            self._thread.add(self)
        self._queue.append(request)
        self._pump()

    def _follow_controller(self) -> None:
        """Sends the first request to the controller that is active now.

        If the request has not been sent yet because the connection to another node is still being opened, that
        connection is closed first.
        """
        channel, controller = self._channel, self._find_controller()
        is_waiting = self._in_flight is not None and channel is not None and not channel.is_connected
        if channel is not None and is_waiting and controller not in (None, channel.destination):
            channel.shut()  # the request fails, and is sent again
        else:
            self._pump()

    def _pump(self) -> None:
        """Sends the first waiting request to the active controller, unless a request is in flight.

        Tries again later if no controller is known, or if the known one has just responded NOT_CONTROLLER. Does nothing
        when the node thread ends, because `shut` will fail the waiting requests.
        """
        self._expire()
        if self._in_flight is not None or not self._queue or self._thread.is_stopped:
            return
        controller = self._find_controller()
        if controller is None or controller == self._refused_by:
            self._refused_by = None  # after a pause the same node may have become the controller
            self._retry_later()
            return
        channel = self._channel_to(controller)
        request = self._in_flight = self._queue.popleft()
        deadline_ms = min(self._thread.clock.monotonic_ms() + self._request_timeout_ms, request.deadline_ms)
        channel.send(request.body, request.key, self._on_done, deadline_ms, highest=request.highest)

    def _on_done(self, response: Any, version: int, error: Exception | None) -> None:
        request, self._in_flight = self._in_flight, None
        assert request is not None
        if error is None and part_with_error(response, Error.NOT_CONTROLLER) is not None:
            error = ApiError(Error.NOT_CONTROLLER)
        if isinstance(error, ApiError) and error.error in _LOST and not self._is_closed and not self._thread.is_stopped:
            assert self._channel is not None
            logger.debug("%s to %s: %s", request.key.name, self._channel.destination, error)
            self._queue.appendleft(request)
            if error.error is Error.NOT_CONTROLLER:
                self._refused_by = self._channel.destination
            self._pump()
            return
        request.on_done(response, version, error)
        self._pump()

    def _channel_to(self, controller: Destination) -> NodeChannel:
        channel = self._channel
        if channel is None or channel.destination != controller:
            if channel is not None:
                channel.close()
            logger.info("Recorded new controller, from now on will use node %s", controller)
            channel = self._channel = NodeChannel(
                self._thread, controller, client_id=self._client_id, security=self._thread.security.controllers
            )
        return channel

    def _expire(self) -> None:
        monotonic_ms = self._thread.clock.monotonic_ms()
        while self._queue and self._queue[0].deadline_ms <= monotonic_ms:
            late = self._queue.popleft()
            late.on_done(None, -1, ApiError(Error.REQUEST_TIMED_OUT))

    def _retry_later(self) -> None:
        if self._retry is None:
            self._retry = self._thread.schedule(RETRY_MS, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._pump()

    def step(self, monotonic_ms: int) -> None:
        """Does nothing. The node thread calls this method of every channel, but this channel sends requests by
        callbacks and a timer."""

    def fail(self, error: Exception) -> None:
        """Does nothing, because `step` raises no error."""

    def shut(self) -> None:
        """Closes the channel on the node thread: fails all requests, also later ones, with NETWORK_EXCEPTION."""
        self._is_closed = True
        self._thread.remove(self)
        if self._channel is not None:
            self._channel.close()
        queued, self._queue = self._queue, deque()
        for request in queued:
            request.on_done(None, -1, _closed())


def _closed() -> ApiError:
    return ApiError(Error.NETWORK_EXCEPTION, "The channel to the controller is closed")
