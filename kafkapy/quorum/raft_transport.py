"""Sends the requests of the quorum to other nodes, over a channel for each destination."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.errors import ProtocolViolation
from kafkapy.nodes.node_channel import BACKOFF_MS, NodeChannel
from kafkapy.nodes.node_channel import Destination as NodeDestination
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.quorum.raft.messages import Destination, Request, Response
from kafkapy.quorum.raft_client import failure_of, outgoing

MAX_CHANNELS = 64
MAX_RECONNECT_MS = 200
logger = logging.getLogger("kafka.raft.KafkaNetworkChannel")


class RaftTransport:
    """Owns the channels to the other voters and to the bootstrap servers. Only the quorum thread, which runs Raft, may
    use it.
    """

    def __init__(self, thread: NodeThread, *, client_id: str, listener_name: str, request_timeout_ms: int) -> None:
        """Creates a transport without connections; the connections will run on the node thread `thread`.

        Requests are sent to the listener `listener_name` of the other nodes, and fail after `request_timeout_ms`.
        """
        self._thread = thread
        self._client_id = client_id
        self._listener_name = listener_name
        self._request_timeout_ms = request_timeout_ms
        self._channels: dict[Destination, NodeChannel] = {}

    def send(self, destination: Destination, request: Request, on_response: Callable[[Response | None], None]) -> None:
        """Sends a request, and calls `on_response` once, with the response. If the request fails, the argument is None,
        or an UNSUPPORTED_VERSION response if a voter does not support PreVote (see `failure_of`).

        `on_response` is called on the node thread, which runs the connections to other nodes. If the channel refuses
        the request, it is called before this method returns.
        """
        translated = outgoing(request)

        def done(response: Any, version: int, error: Exception | None) -> None:
            if error is not None:
                logger.debug("%s to %s: %s", translated.api_key.name, destination, error)
                on_response(failure_of(request, error))
                return
            try:
                found = translated.read(response, self._listener_name)
            except (ValueError, ProtocolViolation) as failure:
                logger.warning("%s of %s cannot be read: %s", translated.api_key.name, destination, failure)
                found = None
            on_response(found)

        deadline_ms = self._thread.clock.monotonic_ms() + self._request_timeout_ms
        self._channel(destination).send(translated.build, translated.api_key, done, deadline_ms)

    def is_refused(self, destination: Destination) -> bool:
        """Returns True if the last attempt to connect was refused, because no process listens at the address."""
        channel = self._channels.get(destination)
        return channel is not None and channel.is_refused

    def _channel(self, destination: Destination) -> NodeChannel:
        channel = self._channels.pop(destination, None)
        if channel is None:
            if len(self._channels) >= MAX_CHANNELS:
                oldest = next(iter(self._channels))
                self._channels.pop(oldest).close()
            channel = NodeChannel(
                self._thread,
                NodeDestination(*destination),
                client_id=self._client_id,
                backoff=ExponentialBackoff(BACKOFF_MS, MAX_RECONNECT_MS),
                security=self._thread.security.controllers,
            )
        self._channels[destination] = channel  # at the end, as the one that was used last
        return channel
