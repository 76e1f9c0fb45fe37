"""What every operation of the admin client stands on: a network that the caller drives, and questions by key.

Most operations concern several keys (topics, groups, partitions), each of which one broker must be asked about. That is
always the same loop (KIP-396's strategies): look up who to ask, ask them all at once, keep the keys whose errors pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from kafkapy.client.admin.requests import AdminRequest, RequestQueue, Target, no_fault
from kafkapy.client.admin.results import Results
from kafkapy.client.configuration import admin_config
from kafkapy.client.exchange import POLL_MS, passes
from kafkapy.client.network import Network
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.types import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

IN_FLIGHT_LIMIT = 100
# A topic that was made just now may not be known everywhere: it is looked for this often, and not until the time is up.
ATTEMPTS_FOR_UNKNOWN = 3


class Found(NamedTuple):
    """Where keys are asked about: broker ids, and errors of those that nobody can be asked about."""

    nodes: dict[Any, int]
    errors: dict[Any, ApiError]


class AdminCalls:
    """Owns the network of an admin client; it has no thread, whoever calls drives it.  Any thread may call.

    Times are in seconds; without `timeout` an operation takes default.api.timeout.ms at most. What fails as a whole
    raises ApiError (REQUEST_TIMED_OUT if nobody answers); what fails for one key is in the `errors` of the Results.
    """

    def __init__(
        self, properties: Mapping[str, Any] | None = None, *, clock: Clock | None = None, **settings: Any
    ) -> None:
        """`properties` are Apache Kafka's keys for admin clients, `settings` the same with `_` for `.`. ConfigError."""
        self._config = admin_config(properties, **settings)
        self._timeout_s: float = self._config["default.api.timeout.ms"] / 1000
        self._network = Network(self._config, in_flight_limit=IN_FLIGHT_LIMIT, clock=clock)
        self._network.metadata.allow_creation = False
        self._queue = RequestQueue(self._network, self._config["retries"])
        self._network.tasks.append(self._queue)

    def close(self) -> None:
        """Ends the connections."""
        self._network.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Where a request goes

    def _any_broker(self, now_ms: int) -> int | None:
        return self._network.least_loaded()

    def _controller(self, now_ms: int) -> int | None:
        """The broker that the cluster names as its controller: the controller, or one that forwards to it."""
        cluster = self._network.cluster
        if cluster.controller_id in cluster.nodes:
            return cluster.controller_id
        if not self._network.metadata.updates:
            return None
        return self._network.least_loaded()

    def _broker(self, node_id: int) -> Target:
        """A certain broker; BROKER_NOT_AVAILABLE if the cluster does not know it."""

        def target(now_ms: int) -> int | None:
            if node_id in self._network.cluster.nodes:
                return node_id
            if not self._network.metadata.updates:
                return None
            raise ApiError(Error.BROKER_NOT_AVAILABLE, f"Broker {node_id} is not available.")

        return target

    # Asking

    def _deadline_ms(self, timeout: float | None) -> int:
        return self._network.clock.monotonic_ms() + int((self._timeout_s if timeout is None else timeout) * 1000)

    def _left_ms(self, deadline_ms: int) -> int:
        """For requests that say how long the broker may take."""
        return max(deadline_ms - self._network.clock.monotonic_ms(), 1)

    def _ask_all(self, requests: Collection[AdminRequest], deadline_ms: int) -> None:
        """Returns when each has its answer or its error."""
        if self._network.is_closed():
            raise RuntimeError("This admin client is closed")
        with self._network.seat:
            self._queue.add(requests)
        try:
            self._network.wait_until(
                lambda: all(each.is_done for each in requests), self._left_ms(deadline_ms) / 1000, poll_ms=POLL_MS
            )
        finally:
            with self._network.seat:
                self._queue.give_up(requests, self._why_late())

    def _why_late(self) -> str:
        if not self._network.metadata.updates:
            addresses = ",".join(self._config["bootstrap.servers"])
            return f"Timed out waiting for a node assignment: no broker of {addresses} answers."
        return "Timed out waiting for the brokers' answers."

    def _ask(
        self,
        target: Target,
        key: ApiKey,
        build: Callable[[int], Any],
        fault: Callable[[Any], ApiError | None] = no_fault,
        *,
        deadline_ms: int,
    ) -> Any:
        """One request's response; raises its error."""
        request = AdminRequest(target, key, build, fault)
        self._ask_all([request], deadline_ms)
        return request.result()

    def _ask_by_key(
        self,
        keys: Collection[K],
        find: Callable[[Collection[K], int], Found],
        ask: Callable[[int, list[K]], AdminRequest],
        read: Callable[[Any, list[K]], Results[K, V]],
        deadline_ms: int,
        *,
        one_by_one: bool = False,
    ) -> Results[K, V]:
        """Looks up who to ask about each key (`find`), asks (`ask(broker id, its keys)`), and reads the answers. Keys
        with errors that pass are looked up and asked about again until the time is over. `one_by_one`: a request is
        about one key only."""
        results: Results[K, V] = Results()
        pending = list(dict.fromkeys(keys))
        attempts = 0
        while pending:
            found = find(pending, deadline_ms)
            failed = {key: found.errors[key] for key in pending if key in found.errors}
            requests: list[tuple[AdminRequest, list[K]]] = []
            for node_id, asked in _parts(pending, found, one_by_one):
                requests.append((ask(node_id, asked), asked))
                requests[-1][0].asks_again = False
            self._ask_all([request for request, _ in requests], deadline_ms)
            for request, asked in requests:
                told: Results[K, V] = Results() if request.error is not None else read(request.response, asked)
                results.values.update(told.values)
                missing = request.error or ApiError(Error.UNKNOWN_SERVER_ERROR, "The response does not speak of it.")
                failed.update({key: told.errors.get(key, missing) for key in asked if key not in told.values})
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
            if passes(error)
            and (error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION or attempts < ATTEMPTS_FOR_UNKNOWN)
        ]

    def _pause(self, attempts: int, deadline_ms: int) -> None:
        pause_ms = min(self._network.retry_backoff.pause_ms(attempts - 1), self._left_ms(deadline_ms))
        self._network.wait_until(lambda: False, pause_ms / 1000)


def _parts(keys: Iterable[K], found: Found, one_by_one: bool) -> Iterator[tuple[int, list[K]]]:
    """What to ask each broker about."""
    by_node: dict[int, list[K]] = {}
    for key in keys:
        if key not in found.errors:
            by_node.setdefault(found.nodes[key], []).append(key)
    for node_id, asked in by_node.items():
        if one_by_one:
            yield from ((node_id, [key]) for key in asked)
        else:
            yield node_id, asked
