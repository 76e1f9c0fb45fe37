"""The quotas of clients: their limits, the sensors that measure what is spent, and the throttle times.

metadata image -> apply                     the limits of each kind, by entity
request        -> begin                     its client's sensors, which the gate shares
               -> RequestCost               records what the request spends, and returns the throttle time
               -> RequestContext.respond    sends the response, then mutes the connection
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import perf_counter_ns
from typing import NamedTuple
from weakref import WeakValueDictionary

from kafkapy._core.broker_state.client_limits import ClientLimits
from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy._core.gate.data_gate import DataGate
from kafkapy._core.reactor.reactor import Connection, Reactor
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.row import INT_MAX
from kafkapy.metadata.image import QuotaEntity
from kafkapy.protocol.api import ApiKey
from kafkapy.security.principal import Principal
from kafkapy.server.quotas.precedence import FETCH, PRODUCE, REQUEST, Bucket, Limits

# Requests between brokers, whose time no quota limits. The fetches of followers are exempt too.
EXEMPT_APIS = frozenset({ApiKey.WRITE_TXN_MARKERS})
PERCENT_PER_NS = 100 / 1e9
# A sensor that nothing was recorded in for so long is dropped, as in Kafka.
SENSOR_IDLE_MS = 3_600_000


class Throttled(NamedTuple):
    """The throttle time that a bucket's client got last."""

    throttle_ms: int
    at_ms: int


class Spending(NamedTuple):
    """The rate at which the clients of a bucket spend its limit."""

    bucket: Bucket
    rate: float  # per second
    bound: float
    throttle_ms: int  # the last throttle time within the window, or 0


class RequestCost:
    """The measurement of what one request spends from the quotas of its client. Reactor thread only."""

    __slots__ = (
        "_client_id",
        "_is_charged",
        "_principal",
        "_quotas",
        "_size",
        "_started_ns",
        "_used_ns",
        "is_exempt",
    )

    def __init__(
        self, quotas: ClientQuotas, principal: Principal, client_id: str, size: int, *, is_exempt: bool
    ) -> None:
        """`is_exempt` says whether the quota of time does not apply to the request."""
        self._quotas = quotas
        self._principal = principal
        self._client_id = client_id
        self._size = size
        self._started_ns = perf_counter_ns()
        self._used_ns = 0
        self._is_charged = False
        self.is_exempt = is_exempt

    def pause(self) -> None:
        """Ends the measurement of the time, because the handler has returned and will respond later."""
        self._used_ns = perf_counter_ns() - self._started_ns

    def charge_time(self) -> int:
        """Records the time that the request has used, once, and returns the throttle time, one sample at most."""
        if self._is_charged or self.is_exempt:
            return 0
        self._is_charged = True
        percent = (self._used_ns or perf_counter_ns() - self._started_ns) * PERCENT_PER_NS
        return self._record(REQUEST, percent)

    def charge_produce(self) -> int:
        """Records the size of a produce request, and returns the throttle time."""
        return self._record(PRODUCE, self._size)

    def charge_fetch(self, size: int) -> int:
        """Records the size of a response to a fetch, and returns the throttle time. A response that is throttled is
        sent without records: then `refund_fetch` has to follow."""
        return self._record(FETCH, size)

    def refund_fetch(self, size: int) -> None:
        """Withdraws what `charge_fetch` has recorded."""
        self._record(FETCH, -size)

    def largest_fetch(self, max_bytes: int) -> int:
        """Returns `max_bytes`, or the largest response that the client's quota allows at all if that is smaller."""
        return self._quotas.largest_fetch(self._principal, self._client_id, max_bytes)

    def _record(self, key: str, value: float) -> int:
        return self._quotas.record(key, self._principal, self._client_id, value)


class _Kind:
    """The limits and sensors of one kind of quota."""

    def __init__(self, key: str, limits: Limits, sample_limit: int, sample_ms: int) -> None:
        self.limits = limits
        self.sensors: dict[Bucket, QuotaSensor] = {}
        self.throttled: dict[Bucket, Throttled] = {}
        self.longest_ms = sample_ms if key == REQUEST else INT_MAX  # of the throttle times
        self._sample_limit = sample_limit
        self._sample_ms = sample_ms

    def sensor(self, principal: Principal, client_id: str) -> QuotaSensor | None:
        """Returns the sensor of the client's bucket, or None if no limit applies to the client."""
        limit = self.limits.find(principal, client_id)
        if limit is None:
            return None
        sensor = self.sensors.get(limit.bucket)
        if sensor is None:
            sensor = self.sensors[limit.bucket] = QuotaSensor(limit.bound, self._sample_limit, self._sample_ms)
        else:
            sensor.bound = limit.bound
        return sensor

    def note_throttled(self, principal: Principal, client_id: str, throttled: Throttled) -> None:
        limit = self.limits.find(principal, client_id)
        if limit is not None:
            self.throttled[limit.bucket] = throttled

    def drop_idle(self, monotonic_ms: int) -> None:
        """Drops the sensors in which nothing was recorded for an hour."""
        idle = [bucket for bucket, each in self.sensors.items() if monotonic_ms - each.last_record_ms > SENSOR_IDLE_MS]
        for bucket in idle:
            del self.sensors[bucket]
            self.throttled.pop(bucket, None)


class ClientQuotas:
    """Measures and limits the requests of clients. Reactor thread only.

    `is_limiting` is True while at least one quota of a client is set; nothing is measured before.
    """

    def __init__(
        self, config: BrokerConfig, gate: DataGate, reactor: Reactor, make_limits: Callable[[str], Limits]
    ) -> None:
        """`make_limits` returns the limits of a kind of quota, given its key."""
        self.is_limiting = False
        self._reactor = reactor
        self._gate = gate
        self._sample_limit: int = config.quota_window_num
        self.sample_ms: int = config.quota_window_size_seconds * 1000
        self._kinds = {
            key: _Kind(key, make_limits(key), self._sample_limit, self.sample_ms) for key in (PRODUCE, FETCH, REQUEST)
        }
        self._shared: WeakValueDictionary[tuple[Principal, bytes], ClientLimits] = WeakValueDictionary()

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Takes over the quotas of a metadata image. They apply to the next request of each client.

        What was spent from a bucket counts on, as in Kafka, also if it was not limited meanwhile.
        """
        for kind in self._kinds.values():
            kind.limits.apply(quotas)
        self.is_limiting = not all(kind.limits.is_empty for kind in self._kinds.values())
        self._renew()

    def _renew(self) -> None:
        """Makes the gate ask for the limits of all clients again."""
        self._shared.clear()
        self._gate.limit(self.is_limiting)

    def check(self) -> None:
        """Takes over limits that have changed without a change of the metadata."""
        outdated = [kind.limits.is_outdated() for kind in self._kinds.values()]  # each of them is asked
        if any(outdated):
            self._renew()

    def begin(
        self, connection: Connection, principal: Principal, client_id: str | None, api_key: int, size: int
    ) -> RequestCost:
        """Begins to measure a request of `size` bytes, and tells the gate about its client."""
        name = client_id or ""
        self._learn(connection, principal, name.encode())
        return RequestCost(self, principal, name, size, is_exempt=api_key in EXEMPT_APIS)

    def _learn(self, connection: Connection, principal: Principal, client_id: bytes) -> None:
        """Attaches the limits of the request's client to its connection, for the gate."""
        limits = self._gate.limits_of(connection)
        generation = self._gate.limits_generation
        if limits is not None and limits.generation == generation and limits.client_id == client_id:
            return
        key = (principal, client_id)
        limits = self._shared.get(key)
        if limits is None:
            limits = self._shared[key] = self._limits(generation, principal, client_id)
        self._gate.set_limits(connection, limits)

    def _limits(self, generation: int, principal: Principal, client_id: bytes) -> ClientLimits:
        name = client_id.decode()
        fetch = self._kinds[FETCH].sensor(principal, name)
        return ClientLimits(
            generation,
            client_id,
            produce=self._kinds[PRODUCE].sensor(principal, name),
            fetch=fetch,
            request=self._kinds[REQUEST].sensor(principal, name),
            fetch_window_bytes=0 if fetch is None else self._window(fetch.bound),
        )

    def _window(self, bound: float) -> int:
        """Returns how many units of a quota may pass at once after a pause."""
        return int(bound * (self._sample_limit - 1) * self.sample_ms / 1000)

    def largest_fetch(self, principal: Principal, client_id: str, max_bytes: int) -> int:
        """Returns `max_bytes`, or the largest response that the client's quota allows at all if that is smaller."""
        sensor = self._kinds[FETCH].sensor(principal, client_id)
        return max_bytes if sensor is None else min(max_bytes, self._window(sensor.bound))

    def record(self, key: str, principal: Principal, client_id: str, value: float) -> int:
        """Records `value` in the client's bucket, and returns the throttle time in milliseconds."""
        kind = self._kinds[key]
        sensor = kind.sensor(principal, client_id)
        if sensor is None:
            return 0
        monotonic_ms = self._reactor.monotonic_ms
        sensor.record(value, monotonic_ms)
        throttle_ms = min(sensor.throttle_ms(monotonic_ms), kind.longest_ms)
        if throttle_ms:
            kind.note_throttled(principal, client_id, Throttled(throttle_ms, monotonic_ms))
        return throttle_ms

    def drop_idle(self, monotonic_ms: int) -> None:
        """Drops sensors that were not used for an hour. The gate asks for the limits of its clients again."""
        for kind in self._kinds.values():
            kind.drop_idle(monotonic_ms)
        self._renew()

    def spending(self, key: str, monotonic_ms: int) -> Iterator[Spending]:
        """Yields what is spent from each bucket of a kind that is in use. Any thread may call it."""
        kind = self._kinds[key]
        window_ms = self._sample_limit * self.sample_ms
        for bucket, sensor in list(kind.sensors.items()):
            last = kind.throttled.get(bucket)
            is_recent = last is not None and monotonic_ms - last.at_ms < window_ms
            throttle_ms = last.throttle_ms if last is not None and is_recent else 0
            yield Spending(bucket, sensor.rate(monotonic_ms), sensor.bound, throttle_ms)
