"""The connection of one fetcher to its leader. It sends the requests that LeaderFetcher plans.

At most one request is in flight. The connection is opened for the first request. If it is refused or lost, it is opened
again after the back-off.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.wire import Reader, Writer
from kafkapy._core.reactor.reactor import OutgoingConnection, Request
from kafkapy.errors import ProtocolViolation
from kafkapy.metadata.features import list_offsets_request_version
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey, request_header_version, response_header_version
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.protocol.messages.header import RequestHeader, ResponseHeader
from kafkapy.protocol.messages.list_offsets import ListOffsetsResponse
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.fetcher.fetch_request import build_fetch, build_list_offsets, fetch_version, leader_offsets
from kafkapy.replica.fetcher.fetch_session import FetchPlan
from kafkapy.replica.fetcher.leader_fetcher import LeaderFetcher, OffsetQuery
from kafkapy.replica.fetcher.settings import FetchSettings
from kafkapy.storage.log import Log
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.errors import AuthenticationError
    from kafkapy.replica.fetcher.leader_authentication import LeaderAuthentication
    from kafkapy.security.sasl.client_mechanism import ClientMechanism

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")

# Room in a response for headers of partitions, and for one batch that is larger than all limits.
RESPONSE_OVERHEAD_BYTES = 100 << 20
_LARGEST_RESPONSE_BYTES = 2**31 - 1
# The time that a Fetch has to end by itself when partitions were added: a leader with records responds sooner.
PATIENCE_MS = 30
NEVER = 2**63 - 1


class Connect(Protocol):
    """The type of the function that opens connections to leaders.

    It calls `on_opened` with the connection, or with the error if it cannot be opened; `on_response` with each
    response; and `on_closed` with a connection that has ended.
    """

    def __call__(
        self,
        host: str,
        port: int,
        *,
        attempt: int,
        max_response_bytes: int,
        on_opened: Callable[[OutgoingConnection | OSError], None],
        on_response: Callable[[Request], None],
        on_closed: Callable[[OutgoingConnection], None],
    ) -> None: ...


class FetchPorts(NamedTuple):
    """The functions of the broker that fetchers use. All are called on the reactor's thread.

    `leader_endpoint` returns the host and port of the broker with an id, or None if they are unknown.
    `on_high_watermarks` is called with the partitions whose high watermark changed, `on_truncated` with a log that was
    truncated. `sasl_mechanism` returns the object that implements the client's side of a SASL authentication with a
    host, or None if connections do not use SASL.
    """

    connect: Connect
    schedule: Schedule
    monotonic_ms: Callable[[], int]
    leader_endpoint: Callable[[int], tuple[str, int] | None]  # of inter.broker.listener.name
    broker_epoch: Callable[[], int]
    metadata_version: Callable[[], int]
    on_high_watermarks: Callable[[list[TopicPartition]], None]
    on_truncated: Callable[[Log], None]
    # Returns the mechanism for one authentication by SASL with a host, or None without SASL.
    sasl_mechanism: Callable[[str], ClientMechanism | None] = lambda host: None


class _InFlight(NamedTuple):
    plan: FetchPlan | OffsetQuery
    api_key: ApiKey
    version: int
    correlation_id: int


class FetchConnection:
    """Owns a connection, its timers, and the fetcher whose requests it sends. Used only by the thread that owns it.

    Invariants: while a plan is unanswered, the connection is open, authenticating or being opened; at most one timer is
    scheduled.
    """

    def __init__(self, leader_id: int, index: int, settings: FetchSettings, ports: FetchPorts) -> None:
        self.fetcher = LeaderFetcher(settings.backoff_ms)
        self.name = f"[ReplicaFetcher replicaId={settings.node_id}, leaderId={leader_id}, fetcherId={index}]"
        self._leader_id = leader_id
        self._client_id = f"broker-{settings.node_id}-fetcher-{index}"
        self._settings = settings
        self._ports = ports
        self._connection: OutgoingConnection | None = None
        self._host = ""  # of the connection
        self._attempts = 0
        self._generation = 0  # callbacks of an earlier connection are ignored
        self._is_opening = False
        self._plan: FetchPlan | OffsetQuery | None = None  # waits for the connection or its authentication
        self._authentication: LeaderAuthentication | None = None  # in progress
        self._authenticate_at_ms = 0  # for the first or for another time; NEVER if the session has no end
        self._in_flight: _InFlight | None = None
        self._correlation_id = 0
        self._deadline_ms = 0  # of the request or of the connection's establishment
        self._give_up_ms = NEVER  # the time at which a Fetch that the leader holds is given up
        self._timer: TimerEntry | None = None
        self._timer_is_due_ms = 0
        self._is_closed = False

    def wake(self) -> None:
        """Sends the next request, unless the last one is still unanswered. Called whenever the fetcher's partitions
        have changed."""
        if self._is_closed or self._plan is not None:
            return
        if self._in_flight is not None:
            self._limit_wait(self._in_flight)
            return
        plan = self.fetcher.next_request(self._ports.monotonic_ms())
        if plan is None:
            self._sleep()
        elif self._connection is None:
            self._plan = plan
            self._open()
        else:
            self._send_authenticated(self._connection, plan)

    def _limit_wait(self, sent: _InFlight) -> None:
        """Abandons the unanswered Fetch after PATIENCE_MS, if partitions were added after it was sent.

        The leader may delay its response for the Fetch's whole waiting time, and the added partitions must not wait so
        long.
        """
        if isinstance(sent.plan, FetchPlan) and self._give_up_ms == NEVER and self.fetcher.has_new_partitions:
            monotonic_ms = self._ports.monotonic_ms()
            self._give_up_ms = monotonic_ms + PATIENCE_MS
            self._schedule(monotonic_ms, self._give_up_ms)

    def _give_up(self) -> None:
        """Abandons the Fetch that the leader has not answered yet, and fetches all partitions over a new connection."""
        self._in_flight = None
        self._give_up_ms = NEVER
        self.fetcher.abandon_request()
        self._drop_connection("partitions were added to those that it fetches")
        self.wake()

    def close(self) -> None:
        """Closes the connection permanently; the fetcher is not used afterwards."""
        self._is_closed = True
        self._plan = self._in_flight = None
        self._cancel_timer()
        self._drop_connection("no partition is fetched over it")

    # -- connection ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        endpoint = self._ports.leader_endpoint(self._leader_id)
        if endpoint is None:
            self._lose("its endpoint is not in the metadata")
            return
        self._generation += 1
        generation = self._generation
        self._is_opening = True
        self._arm(self._settings.connect_timeout_ms)
        self._host, port = endpoint
        self._ports.connect(
            self._host,
            port,
            attempt=self._attempts,
            max_response_bytes=min(
                self._settings.response_max_bytes + RESPONSE_OVERHEAD_BYTES, _LARGEST_RESPONSE_BYTES
            ),
            on_opened=lambda opened: self._on_opened(generation, opened),
            on_response=lambda response: self._on_response(generation, response),
            on_closed=lambda connection: self._on_closed(generation, connection),
        )

    def _on_opened(self, generation: int, opened: OutgoingConnection | OSError) -> None:
        if generation != self._generation or self._is_closed:
            if not isinstance(opened, OSError):
                opened.close("it is no longer needed")
            return
        self._is_opening = False
        if isinstance(opened, OSError):
            self._lose(str(opened))
            return
        self._connection = opened
        plan = self._plan
        assert plan is not None, "a connection is opened for a request"
        self._authenticate_at_ms = 0
        self._send_authenticated(opened, plan)

    def _send_authenticated(self, connection: OutgoingConnection, plan: FetchPlan | OffsetQuery) -> None:
        """Sends the request of `plan`, after an authentication by SASL if the connection has to authenticate now."""
        if self._authenticate_at_ms <= self._ports.monotonic_ms():
            try:
                mechanism = self._ports.sasl_mechanism(self._host)
            except Exception as error:  # for example of the Kerberos library, if the ticket has expired
                self._drop_connection(f"there are no credentials: {error}")
                self._lose(f"there are no credentials: {error}")
                return
            if mechanism is not None:
                self._authenticate(connection, mechanism, plan)
                return
            self._authenticate_at_ms = NEVER
        self._plan = None
        self._send(connection, plan)

    def _authenticate(
        self, connection: OutgoingConnection, mechanism: ClientMechanism, plan: FetchPlan | OffsetQuery
    ) -> None:
        from kafkapy.replica.fetcher.leader_authentication import LeaderAuthentication

        def done(renew_after_ms: int | None, error: AuthenticationError | None) -> None:
            self._authentication = None
            if error is not None:
                self._drop_connection(error.message)
                self._lose(error.message)
                return
            self._authenticate_at_ms = NEVER
            if renew_after_ms is not None:
                self._authenticate_at_ms = self._ports.monotonic_ms() + renew_after_ms
            self._plan = None
            self._send(connection, plan)

        self._plan = plan
        self._arm(self._settings.request_timeout_ms)
        self._authentication = LeaderAuthentication(connection, mechanism, self._client_id, done)
        self._authentication.start()

    def _on_closed(self, generation: int, connection: OutgoingConnection) -> None:
        if generation == self._generation and not self._is_closed:
            number = connection.close_errno
            self._connection = None
            self._lose(os.strerror(number) if number else connection.describe_close())

    def _lose(self, reason: str) -> None:
        """Handles a connection that could not be opened or was closed: forgets it and delays the fetches of all
        partitions."""
        logger.warning("%s Connection to node %d failed: %s", self.name, self._leader_id, reason)
        self._generation += 1
        self._attempts += 1
        self._is_opening = False
        self._plan = self._in_flight = self._authentication = None
        self._give_up_ms = NEVER
        self.fetcher.on_failure(self._ports.monotonic_ms())
        self._sleep()

    def _drop_connection(self, reason: str) -> None:
        connection, self._connection = self._connection, None
        self._generation += 1
        if connection is not None:
            connection.close(reason)

    # -- time ----------------------------------------------------------------------------------------------------

    def _arm(self, timeout_ms: int) -> None:
        """Sets the deadline, after `timeout_ms`, of the request in flight or of opening the connection, and starts the
        timer.

        If the timer runs already and ends earlier, it is kept, and started again for the deadline when it ends.
        """
        monotonic_ms = self._ports.monotonic_ms()
        self._deadline_ms = monotonic_ms + timeout_ms
        self._schedule(monotonic_ms, min(self._deadline_ms, self._give_up_ms))

    def _sleep(self) -> None:
        """Starts the timer for the time at which the next back-off of a partition ends, or a throttle permits the next
        request. Cancels the timer if there is no such time.
        """
        deadline_ms = self.fetcher.next_deadline_ms()
        if deadline_ms is None:
            self._cancel_timer()
            return
        self._schedule(self._ports.monotonic_ms(), deadline_ms)

    def _schedule(self, monotonic_ms: int, due_ms: int) -> None:
        if self._timer is not None:
            if self._timer_is_due_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer_is_due_ms = due_ms
        self._timer = self._ports.schedule(max(0, due_ms - monotonic_ms), self._on_timer)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        if self._is_closed:
            return
        if self._plan is None and self._in_flight is None:
            self.wake()
            return
        monotonic_ms = self._ports.monotonic_ms()
        if monotonic_ms >= self._give_up_ms:
            self._give_up()
            return
        if monotonic_ms < self._deadline_ms:
            self._schedule(monotonic_ms, min(self._deadline_ms, self._give_up_ms))
            return
        self._drop_connection("the leader did not respond in time")
        self._lose("no response in time")

    # -- requests ------------------------------------------------------------------------------------------------

    def _send(self, connection: OutgoingConnection, plan: FetchPlan | OffsetQuery) -> None:
        metadata_version = self._ports.metadata_version()
        message: Message
        if isinstance(plan, FetchPlan):
            key, version = ApiKey.FETCH, fetch_version(plan, metadata_version)
            message = build_fetch(plan, self._settings, self._ports.broker_epoch(), version)
            self._give_up_ms = self.fetcher.next_urgent_retry_ms() or NEVER
        else:
            key, version = ApiKey.LIST_OFFSETS, list_offsets_request_version(metadata_version)
            message = build_list_offsets(plan, self._settings.node_id)
        self._correlation_id = (self._correlation_id + 1) % 2**31
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        writer = Writer()
        header.write(writer, request_header_version(key, version))
        self._in_flight = _InFlight(plan, key, version, self._correlation_id)
        self._arm(self._settings.request_timeout_ms)
        connection.send(message.encode_chunks(version, writer.getvalue()))

    def _ahead(self, monotonic_ms: int) -> Callable[[FetchPlan], None] | None:
        """Returns a function that sends the next Fetch at once, while the records of the last response are appended.

        Returns None if the next Fetch has to be sent later, because the connection is lost or has to authenticate
        first.
        """
        connection = self._connection
        if connection is None or self._authenticate_at_ms <= monotonic_ms:
            return None
        return lambda plan: self._send(connection, plan)

    def _on_response(self, generation: int, response: Request) -> None:
        if generation != self._generation or self._is_closed:
            return
        sent, self._in_flight = self._in_flight, None
        self._give_up_ms = NEVER
        try:
            if self._authentication is not None:
                self._authentication.receive(response.payload)
                return
            if sent is None:
                raise ProtocolViolation("a response without a request")
            self._handle(sent, response.payload)
        except ProtocolViolation as error:
            self._drop_connection(str(error))
            self._lose(f"it sent an invalid response: {error}")
            return
        self._attempts = 0
        self.wake()

    def _handle(self, sent: _InFlight, payload: memoryview) -> None:
        reader = Reader(payload)
        header = ResponseHeader.read(reader, response_header_version(sent.api_key, sent.version))
        if header.correlation_id != sent.correlation_id:
            raise ProtocolViolation(f"response {header.correlation_id} instead of {sent.correlation_id}")
        monotonic_ms = self._ports.monotonic_ms()
        if isinstance(sent.plan, OffsetQuery):
            offsets = ListOffsetsResponse.decode(payload, sent.version, reader.pos)
            self.fetcher.on_offsets(sent.plan, leader_offsets(offsets), monotonic_ms)
            return
        fetched = FetchResponse.decode(payload, sent.version, reader.pos)
        advanced = self.fetcher.on_fetched(fetched, monotonic_ms, self._ahead(monotonic_ms))
        if advanced:
            self._ports.on_high_watermarks(advanced)
