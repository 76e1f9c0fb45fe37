"""The base class of confluent-kafka's clients: their callbacks, the metadata of the cluster, the credentials."""

from __future__ import annotations

import _thread
import logging
import threading
import time
import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kafkapy.client.errors import AuthenticationError, RequestTimedOut
from kafkapy.compat.confluent_kafka._config import Settings
from kafkapy.compat.confluent_kafka._errors import (
    AUTHENTICATION,
    TRANSPORT,
    KafkaError,
    KafkaException,
    code_of,
    kafka_error,
    kafka_exception,
)
from kafkapy.compat.confluent_kafka._model import ThrottleEvent
from kafkapy.config.row import INT_MAX
from kafkapy.errors import ApiError, KafkapyError

if TYPE_CHECKING:
    from kafkapy.client.admin import Admin
    from kafkapy.client.network import Network
    from kafkapy.compat.confluent_kafka.admin._metadata import ClusterMetadata

# A wait is interrupted this often, so that callbacks of other threads and time-outs of other calls are served.
LONGEST_SLICE_S = 0.1
_NEVER_S = float("inf")
_NO_LIMIT_S = INT_MAX / 1000
_RESOLUTION_ERRORS = ("Name or service not known", "Temporary failure in name resolution", "No address associated")


def seconds(timeout: float | None) -> float | None:
    """Converts a time-out of confluent-kafka, in seconds, for kafkapy's methods: a negative number becomes None.

    None, which means no limit or the default of the method, stays None. Raises TypeError for another type.
    """
    if timeout is None:
        return None
    if not isinstance(timeout, int | float):
        raise TypeError(f"must be real number, not {type(timeout).__name__}")
    return None if timeout < 0 else float(timeout)


def time_left(timeout: float | None) -> Callable[[], float]:
    """Returns a function that returns how many seconds of a time-out are left, at least 0.

    The time-out begins with this call. None and a negative number mean no limit, which is 24 days (INT_MAX ms) here.
    Raises TypeError for another type.
    """
    limit_s = seconds(timeout)
    end_s = time.monotonic() + (_NO_LIMIT_S if limit_s is None else limit_s)
    return lambda: max(end_s - time.monotonic(), 0.0)


class Callbacks:
    """The events of one client that wait until the program polls, and the program's callbacks that receive them.

    Any thread adds events; the thread that polls calls the callbacks, so that an exception of a callback is raised in
    that thread.
    """

    def __init__(self, settings: Settings, make_statistics: Callable[[], str]) -> None:
        self.waiting: deque[Callable[[], object]] = deque()
        self._on_error = settings.callbacks.get("error_cb")
        self._on_throttle = settings.callbacks.get("throttle_cb")
        self._on_statistics = settings.callbacks.get("stats_cb")
        self._logger = settings.logger
        self._name = settings["client.id"]
        self._make_statistics = make_statistics
        self._interval_s = settings["statistics.interval.ms"] / 1000 if self._on_statistics is not None else 0.0
        self.next_statistics_s = time.monotonic() + self._interval_s if self._interval_s else _NEVER_S
        self._throttles = False

    def serve(self) -> int:
        """Calls the callbacks of all waiting events; returns their number."""
        served = 0
        waiting = self.waiting
        while waiting:
            waiting.popleft()()
            served += 1
        if self.next_statistics_s != _NEVER_S and time.monotonic() >= self.next_statistics_s:
            self.next_statistics_s = time.monotonic() + self._interval_s
            assert self._on_statistics is not None
            self._on_statistics(self._make_statistics())
            served += 1
        return served

    def error(self, error: KafkaError) -> None:
        """Adds an error for `error_cb`, and a line for the logger of the program."""
        on_error = self._on_error
        if on_error is not None:
            self.waiting.append(lambda: on_error(error))
        self.log(logging.ERROR, "FAIL", error.str())

    def log(self, level: int, facility: str, text: str) -> None:
        """Adds a line for the logger of the program, if the configuration contains a logger.

        `level` is a level of the module `logging`; `facility` is librdkafka's name of the event's kind, such as "FAIL".
        """
        logger = self._logger
        if logger is not None:
            self.waiting.append(lambda: logger.log(level, "%s [%s] %s", facility, self._name, text))

    def watch(self, network: Network) -> None:
        """Begins to report a network's failed connections and throttling delays to the application's callbacks.

        The networking thread must not keep the callbacks alive, because they may have references to the client.
        """
        reference = weakref.ref(self)

        def failed(reason: str, failure: BaseException | None) -> None:
            callbacks = reference()
            if callbacks is not None:
                callbacks._connection_failed(network, reason, failure)

        def delayed(node: Any, delay_ms: int) -> None:
            callbacks = reference()
            if callbacks is not None:
                callbacks._delayed(node, delay_ms)

        network.on_failure = failed
        if self._on_throttle is not None:
            network.throttling.on_delay = delayed

    def _connection_failed(self, network: Network, reason: str, failure: BaseException | None) -> None:
        if isinstance(failure, AuthenticationError):
            self.error(KafkaError(AUTHENTICATION, reason))
            return
        is_unresolved = any(each in reason for each in _RESOLUTION_ERRORS)
        self.error(KafkaError(code_of("_RESOLVE") if is_unresolved else TRANSPORT, reason))
        if network.all_failed():
            count = len(network.cluster.nodes)
            self.error(KafkaError(code_of("_ALL_BROKERS_DOWN"), f"{count}/{count} brokers are down"))

    def _delayed(self, node: Any, delay_ms: int) -> None:
        """Adds an event for the delay that a broker demands, if the program has a `throttle_cb`.

        The first response without a delay after a delayed one adds an event with the time 0, as in librdkafka.
        """
        on_throttle = self._on_throttle
        if on_throttle is None or not (delay_ms or self._throttles):
            return
        self._throttles = delay_ms > 0
        event = ThrottleEvent(f"{node.host}:{node.port}", node.node_id, delay_ms / 1000)
        self.waiting.append(lambda: on_throttle(event))


class Client:
    """The base class of the clients of confluent-kafka; owns their settings, callbacks and an admin client."""

    _settings: Settings
    _callbacks: Callbacks
    _closed_message = "Client closed"

    def _start(self, settings: Settings, network: Network | None) -> None:
        self._settings = settings
        self._network = network
        make_statistics = weakref.WeakMethod(self._statistics)  # the networking thread must not keep the client alive
        self._callbacks = Callbacks(settings, lambda: (make_statistics() or str)())
        self._lock = threading.RLock()
        self._admin_client: Admin | None = None
        self._is_closed = False
        if network is not None:
            self._callbacks.watch(network)

    def __del__(self) -> None:
        """Closes the connections of a client that the program has dropped without closing it."""
        admin = getattr(self, "_admin_client", None)
        for network in (getattr(self, "_network", None), None if admin is None else admin._network):
            if network is not None:
                _close_dropped(network)

    # Without ABCMeta, mypy alone demands that subclasses define the method: like confluent-kafka's classes, these have
    # the metaclass `type`, so that a program can give its subclass a metaclass of its own.
    @abstractmethod
    def _statistics(self) -> str:
        """Returns the client's statistics as JSON."""

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(self._closed_message)

    def _admin(self) -> Admin:
        """Returns an admin client with the configuration of this client. The first call makes it."""
        from kafkapy.client.admin import Admin

        with self._lock:
            if self._admin_client is None:
                properties = self._settings.properties()
                from kafkapy.config.client_table import ADMIN_ROWS

                self._admin_client = Admin({key: value for key, value in properties.items() if key in ADMIN_ROWS})
            return self._admin_client

    def _close_admin(self) -> None:
        if self._admin_client is not None:
            self._admin_client.close()

    def _wait(self, is_done: Callable[[], bool], timeout_s: float | None) -> bool:
        """Waits until `is_done()` returns True, and returns True; returns False after `timeout_s` seconds (None: no
        limit).

        Calls the callbacks of events while it waits. Blocks.
        """
        assert self._network is not None
        callbacks = self._callbacks
        end_s = _NEVER_S if timeout_s is None else time.monotonic() + timeout_s
        while True:
            callbacks.serve()
            if is_done():
                return True
            now_s = time.monotonic()
            left_s = min(end_s, callbacks.next_statistics_s) - now_s
            if end_s <= now_s:
                return False
            try:
                self._network.wait_until(
                    lambda: bool(callbacks.waiting) or is_done(), max(min(left_s, LONGEST_SLICE_S), 0)
                )
            except AuthenticationError:
                continue  # `Callbacks.watch` has reported it

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Returns the brokers of the cluster, and all topics or the one that is given, as ClusterMetadata. Blocks.

        `timeout` is in seconds (-1: no limit). Raises KafkaException if the brokers refuse a request or do not respond
        in time.
        """
        self._check_open()
        from kafkapy.compat.confluent_kafka.admin._metadata import cluster_metadata

        try:
            return cluster_metadata(self._admin(), topic, time_left(timeout))
        except RequestTimedOut as error:
            exception = KafkaException(KafkaError(TRANSPORT, "Failed to get metadata: Local: Broker transport failure"))
            raise exception from error
        except KafkapyError as error:
            raise kafka_exception(error, "Failed to get metadata: ") from error

    def cluster_id(self, timeout: float = -1) -> str:
        """Returns the id of the cluster. Blocks for `timeout` seconds at most (-1: no limit).

        Raises KafkaException if no broker responds in time.
        """
        self._check_open()
        try:
            found = self._admin().describe_cluster(timeout=time_left(timeout)()).cluster_id
        except KafkapyError as error:
            raise kafka_exception(error, "Failed to retrieve cluster id: ") from error
        return found or ""

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replaces the user name and the password that the next connections authenticate with."""
        from kafkapy.compat.confluent_kafka._config import invalid
        from kafkapy.compat.confluent_kafka._security_config import sasl_properties

        for value in (username, password):
            if not isinstance(value, str):
                raise TypeError(f"argument must be str, not {type(value).__name__}")
        settings = self._settings
        settings.replace("sasl.username", username)
        settings.replace("sasl.password", password)
        if not settings["security.protocol"].startswith("sasl_"):
            return
        properties = sasl_properties(settings, invalid)
        clients = [each._network for each in (self._admin_client,) if each is not None]
        for network in (*clients, self._network):
            if network is not None:
                network.replace_login(properties)


def _close_dropped(network: Network) -> None:
    """Closes the network of a dropped client, unless it is closed.

    The garbage collector runs in any thread, also in the networking thread and in one that has a lock which `close`
    takes. `close` would then wait for ever, so that another thread calls it, which is started without any lock.
    """
    if network.is_closed():
        return
    with suppress(RuntimeError):  # raised at the end of the program, when no thread can be started
        _thread.start_new_thread(network.close, ())


def error_of(error: BaseException) -> KafkaError:
    """Returns the KafkaError that a KafkaException contains, or that corresponds to an exception of kafkapy.

    Any other exception becomes a KafkaError with the code `_FAIL`.
    """
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return error.args[0]
    if isinstance(error, ApiError | KafkapyError):
        return kafka_error(error)
    return KafkaError(code_of("_FAIL"), str(error))
