"""Requests from this broker to other brokers, on their listener for traffic between brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.errors import ApiError, Error
from kafkapy.nodes.node_channel import Destination, NodeChannel
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.purgatory.purgatory import Schedule

WATCH_MS = 500

Post = Callable[[Callable[[], None]], object]
# Returns the address of a broker, None if it is fenced or unknown.
FindBroker = Callable[[int], "Destination | None"]
OnAnswer = Callable[[Any, Error], None]


class BrokerRequests:
    """Sends requests to other brokers, over one channel for each of them. Only the reactor's thread may use it;
    callbacks are called on this thread too.

    If a broker is fenced or changes its address while it has unanswered requests, they fail at once. The caller then
    looks up the leader again instead of waiting for a time-out.
    """

    def __init__(
        self,
        thread: NodeThread,
        find_broker: FindBroker,
        post: Post,
        schedule: Schedule,
        *,
        client_id: str,
        timeout_ms: int,
    ) -> None:
        """Creates the object; the channel to a broker is created at the first request to it.

        `find_broker` returns the address of a broker by its id, None if it is fenced or unknown. `post` and `schedule`
        run work on the reactor's thread. A request fails when it has had no response for `timeout_ms`.
        """
        self._thread = thread
        self._find_broker = find_broker
        self._post = post
        self._schedule = schedule
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._channels: dict[int, NodeChannel] = {}
        self._waiting: dict[int, int] = {}  # broker -> requests without an answer
        self._is_watching = False

    def send(
        self, broker_id: int, body: Message, key: ApiKey, on_answer: OnAnswer, *, highest: int | None = None
    ) -> None:
        """Sends a request, in API version `highest` at most; calls `on_answer(response, error)` once, after this method
        has returned.

        The response is None if there is an error: BROKER_NOT_AVAILABLE, NETWORK_EXCEPTION, REQUEST_TIMED_OUT or
        UNSUPPORTED_VERSION.
        """
        destination = self._find_broker(broker_id)
        if destination is None:
            self._post(lambda: on_answer(None, Error.BROKER_NOT_AVAILABLE))
            return

        def done(response: Any, version: int, error: Exception | None) -> None:
            failure = Error.NONE
            if error is not None:
                failure = error.error if isinstance(error, ApiError) else Error.UNKNOWN_SERVER_ERROR
            self._post(lambda: self._answered(broker_id, on_answer, response, failure))

        self._waiting[broker_id] = self._waiting.get(broker_id, 0) + 1
        deadline_ms = self._thread.clock.monotonic_ms() + self._timeout_ms
        self._channel_to(destination).send(body, key, done, deadline_ms, highest=highest)
        self._watch()

    def _answered(self, broker_id: int, on_answer: OnAnswer, response: Any, error: Error) -> None:
        self._waiting[broker_id] -= 1
        if not self._waiting[broker_id]:
            del self._waiting[broker_id]
        on_answer(response, error)

    def _channel_to(self, destination: Destination) -> NodeChannel:
        channel = self._channels.get(destination.node_id)
        if channel is None or channel.destination != destination:
            if channel is not None:
                channel.close()
            security = self._thread.security.brokers
            channel = NodeChannel(self._thread, destination, client_id=self._client_id, security=security)
            self._channels[destination.node_id] = channel
        return channel

    def _watch(self) -> None:
        if self._waiting and not self._is_watching:
            self._is_watching = True
            self._schedule(WATCH_MS, self._check)

    def _check(self) -> None:
        """Closes the channel to each broker that has not answered all requests and is now fenced or has another
        address.
        """
        self._is_watching = False
        for broker_id in self._waiting:
            channel = self._channels.get(broker_id)
            if channel is not None and self._find_broker(broker_id) != channel.destination:
                del self._channels[broker_id]
                channel.close()
        self._watch()
