"""The registration of this broker with the active controller, and its heartbeats, from its start to its stop.

    NOT_REGISTERED   sends BrokerRegistration until it is accepted, at most initial.broker.registration.timeout.ms
    FENCED           heartbeats that ask to stay fenced until the broker is ready, and then to be unfenced
    RUNNING          a heartbeat each broker.heartbeat.interval.ms
    STOPPING         heartbeats that ask to shut down, while the controller moves leaderships to other brokers
    STOPPED          no heartbeats; the controller has fenced the broker, or will after its session

If this node is itself the active controller, the requests go through this node's own listener. A broker whose cluster
has only one node uses `BrokerLifecycle`, which needs no requests. When other nodes join, the broker changes to the
class in this module, in the state RUNNING.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import Enum, auto
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.metadata.cluster_image import SECURITY_PROTOCOL_IDS
from kafkapy.metadata.features import SUPPORTED_FEATURES
from kafkapy.nodes.controller_channel import ControllerChannel
from kafkapy.nodes.node_thread import NodeThread, Timer
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kafkapy.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kafkapy.types import random_uuid, uuid_to_string

logger = logging.getLogger("kafka.server.BrokerLifecycleManager")

AFTER_FIRST_MS = 10
# The interval while the broker waits for the controller; Kafka waits for the usual interval from the second time on.
WAITING_INTERVAL_MS = 50
STOPPING_INTERVAL_MS = 200
RETRY_MS = 100
CONTROLLED_SHUTDOWN_S = 300
FIRST_REGISTRATION_WITH_LEVEL_0 = 4


class LifecycleState(Enum):
    """The states of a broker's registration: from its start, when it is registered as fenced, to its controlled
    shutdown."""

    NOT_REGISTERED = auto()
    FENCED = auto()
    RUNNING = auto()
    STOPPING = auto()
    STOPPED = auto()


class BrokerHeartbeats:
    """Owns this broker's registration and sends its heartbeats. The state changes on the node thread, which runs the
    connections to other nodes.

    The thread that starts and stops the broker calls `register`, `unfence`, `give_up_leaderships` and `end_session`, in
    this order. Each of these methods except `end_session` waits for the controller. `report_offline` may be called, and
    the attributes read, by any thread.
    """

    def __init__(
        self,
        config: BrokerConfig,
        thread: NodeThread,
        channel: ControllerChannel,
        *,
        cluster_id: str,
        metadata_offset: Callable[[], int],
        cordoned_directories: Callable[[], tuple[bytes, ...]],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        """Creates the object. Nothing is sent to the controller before `register` or `continue_registration` is called.

        `metadata_offset` returns the offset of the last metadata record that this broker has applied,
        `cordoned_directories` the ids of the log directories that get no new partitions. `on_fatal` is called with an
        exception, on the node thread, if a failed log directory cannot be reported to the controller within
        log.dir.failure.timeout.ms.
        """
        self.broker_epoch = -1
        self.state = LifecycleState.NOT_REGISTERED
        self.incarnation_id = random_uuid()
        self._config = config
        self._thread = thread
        self._channel = channel
        self._cluster_id = cluster_id
        self._metadata_offset = metadata_offset
        self._cordoned_directories = cordoned_directories
        self._on_fatal = on_fatal
        self._backoff = ExponentialBackoff(RETRY_MS, config.broker_session_timeout_ms)
        self._registered: Future[int] = Future()
        self._unfenced: Future[None] = Future()
        self._shut_down: Future[None] = Future()
        self._directory_ids: tuple[bytes, ...] = ()
        self._clean_broker_epoch = -1
        self._listeners: tuple[Listener, ...] = ()
        self._is_ready = False
        self._is_in_flight = False
        self._is_due_again = False  # something has changed while a request was in flight
        self._has_sent_heartbeat = False
        self._failures = 0
        self._last_failure = "no controller is known"
        self._timer: Timer | None = None
        self._offline: dict[bytes, bool] = {}  # id of a failed directory -> the controller knows
        self._reported_cordoned: frozenset[bytes] | None = None  # the controller knows these cordoned directories

    # -- the thread that starts and stops the broker

    def register(
        self,
        directory_ids: Sequence[bytes],
        clean_broker_epoch: int,
        advertised: Sequence[Listener] | None = None,
    ) -> int:
        """Registers the broker as fenced, waits for the response, begins the heartbeats, and returns the broker epoch.

        `directory_ids` are the ids of all online log directories, and `clean_broker_epoch` is the epoch in their
        clean-shutdown markers, -1 if a directory had no marker. `advertised` are the listeners as clients reach them;
        None means the listeners of the configuration. Raises ApiError(REQUEST_TIMED_OUT) if no controller has accepted
        the registration within initial.broker.registration.timeout.ms.
        """
        self._directory_ids = tuple(directory_ids)
        self._clean_broker_epoch = clean_broker_epoch
        self._listeners = tuple(self._config.advertised_listeners if advertised is None else advertised)
        self._thread.schedule(self._config.initial_broker_registration_timeout_ms, self._registration_timed_out)
        self._thread.post(self._communicate)
        epoch = self._registered.result()
        logger.info("registered broker %d with broker epoch %d", self._config.node_id, epoch)
        return epoch

    def continue_registration(self, broker_epoch: int) -> None:
        """Begins the heartbeats of a broker that is registered and unfenced already, because it was the only broker of
        its cluster until now. Any thread may call it.
        """
        self.broker_epoch = broker_epoch
        self._registered.set_result(broker_epoch)
        self._unfenced.set_result(None)
        self._is_ready = True
        self.state = LifecycleState.RUNNING
        self._thread.post(self._communicate)

    def unfence(self) -> None:
        """Asks the controller to unfence the broker, because it can serve all requests now, and waits until it is
        unfenced."""
        self._thread.post(self._become_ready)
        self._unfenced.result()

    def report_cordoned(self) -> None:
        """Sends a heartbeat at once that reports the cordoned log directories. Any thread may call it; it does not
        wait.
        """
        if self.broker_epoch >= 0:  # else the first heartbeat contains them
            self._thread.post(self._communicate)

    def report_offline(self, directory_id: bytes) -> None:
        """Sends a heartbeat at once that reports a failed log directory. Any thread may call it; it does not wait."""
        self._thread.post(lambda: self._report(directory_id))

    def give_up_leaderships(self) -> None:
        """Asks the controller for a controlled shutdown, and waits until the controller has moved the leaderships and
        fenced the broker.

        The broker still serves clients. The wait ends after five minutes at the latest. Does nothing if
        controlled.shutdown.enable is false, and does not wait if the broker is not in the state RUNNING.
        """
        if not self._config.controlled_shutdown_enable:
            return
        self._thread.post(self._begin_stop)
        try:
            self._shut_down.result(CONTROLLED_SHUTDOWN_S)
        except TimeoutError:
            logger.warning("The controlled shutdown did not end within %d s", CONTROLLED_SHUTDOWN_S)

    def end_session(self) -> None:
        """Stops sending heartbeats. The controller has fenced the broker already, or will fence it when the broker's
        session expires."""
        self._thread.post(self._stop)

    # -- node thread

    def _become_ready(self) -> None:
        self._is_ready = True
        self._communicate()

    def _begin_stop(self) -> None:
        if self.state is LifecycleState.RUNNING:
            self.state = LifecycleState.STOPPING
            self._communicate()
        else:
            logger.info("Skipping controlled shutdown because the broker is in state %s", self.state.name)
            self._finish(self._shut_down, None)

    def _stop(self) -> None:
        self.state = LifecycleState.STOPPED
        self._cancel_timer()
        self._finish(self._shut_down, None)
        if not self._unfenced.done():
            self._unfenced.set_exception(ApiError(Error.BROKER_NOT_AVAILABLE, "The broker stops."))

    def _report(self, directory_id: bytes) -> None:
        if directory_id in self._offline:
            return
        self._offline[directory_id] = False
        self._thread.schedule(self._config.log_dir_failure_timeout_ms, lambda: self._check_reported(directory_id))
        if self.broker_epoch >= 0:
            self._communicate()

    def _check_reported(self, directory_id: bytes) -> None:
        if not self._offline[directory_id] and self.state is not LifecycleState.STOPPED:
            name = uuid_to_string(directory_id)
            self._on_fatal(StorageError(name, "the failure of a log directory could not be reported to the controller"))

    def _registration_timed_out(self) -> None:
        if not self._registered.done():
            self._stop()
            self._registered.set_exception(
                ApiError(
                    Error.REQUEST_TIMED_OUT,
                    f"The broker was not registered within {self._config.initial_broker_registration_timeout_ms} ms: "
                    f"{self._last_failure}",
                )
            )

    def _communicate(self) -> None:
        """Sends a heartbeat or, if the broker is not registered yet, the registration. If another request is in flight,
        the new request is sent when the other one has ended."""
        if self.state is LifecycleState.STOPPED:
            return
        if self._is_in_flight:
            self._is_due_again = True
            return
        self._cancel_timer()
        self._is_in_flight = True
        if self.broker_epoch < 0:
            self._channel.send(self._registration, ApiKey.BROKER_REGISTRATION, self._on_registration)
        else:
            self._send_heartbeat()

    def _communicate_in(self, delay_ms: int) -> None:
        if self._is_due_again:
            self._is_due_again = False
            self._communicate()
        elif self.state is not LifecycleState.STOPPED:
            self._cancel_timer()
            self._timer = self._thread.schedule(delay_ms, self._communicate)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _registration(self, version: int) -> Message:
        lowest = 0 if version >= FIRST_REGISTRATION_WITH_LEVEL_0 else 1  # older controllers refuse the level 0
        return BrokerRegistrationRequest(
            broker_id=self._config.node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=SECURITY_PROTOCOL_IDS[each.security_protocol],
                )
                for each in self._listeners
            ],
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
                if low >= lowest
            ],
            rack=self._config.broker_rack,
            log_dirs=list(self._directory_ids),
            previous_broker_epoch=self._clean_broker_epoch,
        )

    def _on_registration(
        self, response: BrokerRegistrationResponse | None, version: int, error: Exception | None
    ) -> None:
        self._is_in_flight = False
        if not self._has_succeeded("registration", response, error):
            return
        assert response is not None
        self.broker_epoch = response.broker_epoch
        self.state = LifecycleState.FENCED
        self._finish(self._registered, response.broker_epoch)
        self._communicate()

    def _send_heartbeat(self) -> None:
        reported: list[bytes] = []  # the failed directories that the request names
        cordoned = frozenset(self._cordoned_directories())

        def build(version: int) -> Message:
            request = BrokerHeartbeatRequest(
                broker_id=self._config.node_id,
                broker_epoch=self.broker_epoch,
                current_metadata_offset=self._metadata_offset(),
                want_fence=not self._is_ready,
                want_shut_down=self.state is LifecycleState.STOPPING,
            )
            if version >= BrokerHeartbeatRequest.FIRST_VERSION_WITH_OFFLINE_LOG_DIRS:
                reported[:] = self._offline
                request.offline_log_dirs = list(reported)
            if (
                version >= BrokerHeartbeatRequest.FIRST_VERSION_WITH_CORDONED_LOG_DIRS
                and self._reported_cordoned != cordoned
            ):
                request.cordoned_log_dirs = sorted(cordoned)
            return request

        def done(response: BrokerHeartbeatResponse | None, version: int, error: Exception | None) -> None:
            self._is_in_flight = False
            if not self._has_succeeded("heartbeat", response, error):
                return
            assert response is not None
            self._offline.update(dict.fromkeys(reported, True))
            if version >= BrokerHeartbeatRequest.FIRST_VERSION_WITH_CORDONED_LOG_DIRS:
                self._reported_cordoned = cordoned
            self._on_heartbeat(response)

        self._channel.send(build, ApiKey.BROKER_HEARTBEAT, done)

    def _on_heartbeat(self, response: BrokerHeartbeatResponse) -> None:
        is_first, self._has_sent_heartbeat = not self._has_sent_heartbeat, True
        delay_ms = self._config.broker_heartbeat_interval_ms
        if self.state is LifecycleState.FENCED:
            if response.is_fenced:
                delay_ms = min(delay_ms, AFTER_FIRST_MS if is_first else WAITING_INTERVAL_MS)
            else:
                logger.info("The broker has been unfenced. Transitioning from FENCED to RUNNING.")
                self.state = LifecycleState.RUNNING
                self._finish(self._unfenced, None)
        elif self.state is LifecycleState.RUNNING and response.is_fenced:
            logger.warning("The controller has fenced the broker; the next heartbeat asks to be unfenced")
            delay_ms = min(delay_ms, WAITING_INTERVAL_MS)
        elif self.state is LifecycleState.STOPPING:
            delay_ms = min(delay_ms, STOPPING_INTERVAL_MS)
            if response.should_shut_down:
                logger.info("The controller has asked us to exit controlled shutdown.")
                self._stop()
        self._communicate_in(delay_ms)

    def _has_succeeded(self, kind: str, response: Any, error: Exception | None) -> bool:
        """Returns True if the request has succeeded: `response` reports no error and `error` is None.

        Otherwise logs the failure, schedules the next attempt and returns False. `kind` is the name of the request that
        is logged.
        """
        if error is None and response.error_code:
            error = ApiError(Error.of(response.error_code))
        if error is None:
            self._failures = 0
            return True
        self._last_failure = f"{kind}: {error}"
        logger.info("Broker %d: %s failed: %s", self._config.node_id, kind, error)
        self._is_due_again = False
        self._communicate_in(self._backoff.pause_ms(self._failures))
        self._failures += 1
        return False

    @staticmethod
    def _finish(future: Future[Any], result: Any) -> None:
        if not future.done():
            future.set_result(result)
