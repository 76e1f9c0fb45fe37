"""The base class of the admin client: sending requests and, for operations on keys, finding the right brokers.

Most operations concern several keys (topics, groups, partitions), each of which a certain broker is responsible for.
They all run the same loop: look up the brokers, send one request to each, and repeat this for the keys with retriable
errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kafkapy.client.admin.requests import AdminRequest, RequestQueue, Target, no_error
from kafkapy.client.admin.results import Results
from kafkapy.client.closing import Closing
from kafkapy.client.configuration import admin_config
from kafkapy.client.coordinator_request import POLL_MS, is_retried
from kafkapy.client.environment import SYSTEM
from kafkapy.client.errors import ClientClosed
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

IN_FLIGHT_LIMIT = 100
# How often a topic that does not exist is looked up, because a broker may not know yet that it was created.
ATTEMPTS_FOR_UNKNOWN = 3


class Found(NamedTuple):
    """The result of looking up the brokers for some keys, such as the leaders of partitions.

    `nodes` has the broker id of each key whose broker was found, `errors` the error of each other key.
    """

    nodes: dict[Any, int]
    errors: dict[Any, ApiError]


class AdminCalls(Closing):
    """The base class of the admin client, which sends the requests. Thread-safe.

    It owns a `Network`: the connections to the brokers, and the loop that sends and receives. This network has no
    thread of its own. The threads that wait for responses run the steps (passes) of its loop.
    """

    _environment = SYSTEM

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self._config = admin_config(properties, **settings)
        self._timeout_s: float = self._config["default.api.timeout.ms"] / 1000
        self._network = Network(self._config, in_flight_limit=IN_FLIGHT_LIMIT, environment=self._environment)
        self._network.metadata.allow_creation = False
        self._queue = RequestQueue(self._network, self._config["retries"])
        self._network.tasks.append(self._queue)

    def __repr__(self) -> str:
        state = " closed" if self._network.is_closed() else ""
        return f"<{type(self).__name__} client_id={self._config['client.id']!r}{state}>"

    def close(self) -> None:
        """Closes the connections. May be called again."""
        self._network.close()

    # Targets of requests

    def _any_broker(self, monotonic_ms: int) -> int | None:
        """Returns the id of a broker that can be reached, or of the active controller if the client is connected to
        controllers. Returns None while no such node is known.
        """
        if self._network.uses_controllers:
            return self._controller(monotonic_ms)
        return self._network.least_loaded()

    def _controller(self, monotonic_ms: int) -> int | None:
        """Returns the id of the broker that the metadata name as controller, or of any broker if they name none.

        Returns None before the first metadata response, or if no broker can be reached. In a KRaft cluster this broker
        forwards requests to the controller.
        """
        cluster = self._network.cluster
        if cluster.controller_id >= 0 and cluster.controller_id in cluster.nodes:
            return cluster.controller_id  # an unknown controller has the id of the first bootstrap address
        if not self._network.metadata.updates:
            return None
        return self._network.least_loaded()

    def _broker(self, node_id: int) -> Target:
        """Returns a function that returns `node_id`, to be passed as the `target` of a request.

        It returns None before the first metadata response. If the cluster has no such broker, it raises ApiError with
        BROKER_NOT_AVAILABLE, with which the request fails.
        """

        def target(monotonic_ms: int) -> int | None:
            if node_id in self._network.cluster.nodes:
                return node_id
            if not self._network.metadata.updates:
                return None
            raise ApiError(Error.BROKER_NOT_AVAILABLE, f"Broker {node_id} is not available.")

        return target

    # Sending

    def _deadline_ms(self, timeout: float | None) -> int:
        return self._network.clock.monotonic_ms() + int((self._timeout_s if timeout is None else timeout) * 1000)

    def _left_ms(self, deadline_ms: int) -> int:
        """Returns the ms left until the monotonic time `deadline_ms`, at least 1; many requests contain it as the
        broker's time-out.
        """
        return max(deadline_ms - self._network.clock.monotonic_ms(), 1)

    def _send_all(self, requests: Collection[AdminRequest], deadline_ms: int) -> None:
        """Sends requests and blocks until each has a response or an error.

        A request without a response at `deadline_ms` (monotonic) has the error RequestTimedOut.
        """
        if self._network.is_closed():
            raise ClientClosed("This admin client is closed")
        with self._network.lock:
            self._queue.add(requests)
        try:
            self._network.wait_until(
                lambda: all(each.is_done for each in requests), self._left_ms(deadline_ms) / 1000, poll_ms=POLL_MS
            )
        finally:
            with self._network.lock:
                self._queue.give_up(requests, self._timeout_reason())
                self._network.authentication_error = None  # a request that failed because of it raises it

    def _timeout_reason(self) -> str:
        if not self._network.metadata.updates:
            kind = "controller" if self._network.uses_controllers else "broker"
            addresses = ",".join(self._config["bootstrap.controllers"] or self._config["bootstrap.servers"])
            return f"Timed out waiting for a node assignment: no {kind} of {addresses} responds."
        return "Timed out waiting for the brokers' responses."

    def _request(
        self,
        target: Target,
        key: ApiKey,
        build: Callable[[int], Any],
        find_error: Callable[[Any], ApiError | None] = no_error,
        *,
        deadline_ms: int,
    ) -> Any:
        """Sends one request and blocks; returns the response or raises the request's error.

        `target(monotonic_ms)` returns the id of the broker to send to, or None if it is not known yet. `build(version)`
        makes the message, and `find_error(response)` returns the error of the response as a whole, or None. Raises
        RequestTimedOut at `deadline_ms` (monotonic).
        """
        request = AdminRequest(target, key, build, find_error)
        self._send_all([request], deadline_ms)
        return request.result()

    def _request_by_key(
        self,
        keys: Collection[K],
        find: Callable[[Collection[K], int], Found],
        make_request: Callable[[int, list[K]], AdminRequest],
        read_response: Callable[[Any, list[K]], Results[K, V]],
        deadline_ms: int,
        *,
        one_key_each: bool = False,
    ) -> Results[K, V]:
        """Sends requests for keys to the brokers responsible for them, and returns the combined results. Blocks.

        `find(keys, deadline_ms)` looks up the brokers, `make_request(broker id, keys)` makes a request, and
        `read_response(response, keys)` returns the results in its response. Keys with retriable errors are looked up
        and requested again until `deadline_ms` (monotonic). With `one_key_each` every request is for one key only.
        """
        results: Results[K, V] = Results()
        pending = list(dict.fromkeys(keys))
        attempts = 0
        while pending:
            found = find(pending, deadline_ms)
            failed = {key: found.errors[key] for key in pending if key in found.errors}
            requests: list[tuple[AdminRequest, list[K]]] = []
            for node_id, requested in _by_node(pending, found, one_key_each):
                requests.append((make_request(node_id, requested), requested))
                requests[-1][0].is_repeated = False
            self._send_all([request for request, _ in requests], deadline_ms)
            for request, requested in requests:
                result: Results[K, V] = (
                    Results() if request.error is not None else read_response(request.response, requested)
                )
                results.values.update(result.values)
                missing = request.error or ApiError(Error.UNKNOWN_SERVER_ERROR, "The response lacks the key.")
                failed.update({key: result.errors.get(key, missing) for key in requested if key not in result.values})
            attempts += 1
            pending = self._still_pending(failed, attempts, deadline_ms)
            results.errors.update({key: error for key, error in failed.items() if key not in pending})
            if pending:
                self._pause(attempts, deadline_ms)
        return results

    def _still_pending(self, failed: Mapping[K, ApiError], attempts: int, deadline_ms: int) -> list[K]:
        if self._network.clock.monotonic_ms() >= deadline_ms:
            return []
        return [
            key
            for key, error in failed.items()
            if is_retried(error)
            and (error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION or attempts < ATTEMPTS_FOR_UNKNOWN)
        ]

    def _pause(self, attempts: int, deadline_ms: int) -> None:
        pause_ms = min(self._network.retry_backoff.pause_ms(attempts - 1), self._left_ms(deadline_ms))
        self._network.wait_until(lambda: False, pause_ms / 1000)


def _by_node(keys: Iterable[K], found: Found, one_key_each: bool) -> Iterator[tuple[int, list[K]]]:
    """Yields the broker id and the keys of each request; with `one_key_each` a request has only one key.

    Keys whose broker was not found are left out.
    """
    keys_of: dict[int, list[K]] = {}
    for key in keys:
        if key not in found.errors:
            keys_of.setdefault(found.nodes[key], []).append(key)
    for node_id, requested in keys_of.items():
        if one_key_each:
            yield from ((node_id, [key]) for key in requested)
        else:
            yield node_id, requested
