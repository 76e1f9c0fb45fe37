"""The quotas of clients: their limits, the sensors that measure what is spent, and the throttle times.

metadata image -> apply                     the limits of each kind, by entity
request        -> begin                     the sensors of its client, which are also used by the compiled code (the
                                            gate) that serves usual requests
               -> RequestCost               records what the request spends, and returns the throttle time
               -> RequestContext.respond    sends the response, then mutes the connection
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
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
from kafkapy.server.quotas.delays import Delays
from kafkapy.server.quotas.precedence import BUCKET_IDLE_MS, FETCH, PRODUCE, REQUEST, Bucket, Limits
from kafkapy.server.quotas.request_cost import PERCENT_PER_NS, RequestCost

# Requests between brokers, whose time no quota limits. The fetches of followers are exempt too.
EXEMPT_APIS = frozenset({ApiKey.WRITE_TXN_MARKERS})


class Spending(NamedTuple):
    """The rate at which the clients in a bucket spend their common limit of `bound` units per second.

    The unit depends on the quota: bytes, or percent of a thread's time.
    """

    bucket: Bucket
    rate: float  # per second
    bound: float
    rule: str  # the entity of the quota that sets the bound
    throttle_ms: float  # the average of the throttle times within the window, or 0
    wait_ms: int  # the time until the rate is at most the bound, if nothing more is spent


class _Kind:
    """The limits of one quota key, such as producer_byte_rate, and the sensors that measure what clients spend.

    Each bucket, that is a group of clients that share one limit, has a sensor.
    """

    def __init__(self, key: str, limits: Limits, sample_limit: int, sample_ms: int) -> None:
        self.limits = limits
        self.sensors: dict[Bucket, QuotaSensor] = {}
        self.rules: dict[Bucket, str] = {}
        self.delays = Delays(sample_limit * sample_ms)
        self.longest_ms = sample_ms if key == REQUEST else INT_MAX  # of the throttle times
        self._sample_limit = sample_limit
        self._sample_ms = sample_ms

    def sensor(self, principal: Principal, client_id: str) -> QuotaSensor | None:
        """Returns the sensor that the client has in common with the clients that share its limit.

        Returns None if no limit applies to the client.
        """
        limit = self.limits.find(principal, client_id)
        if limit is None:
            return None
        sensor = self.sensors.get(limit.bucket)
        if sensor is None:
            sensor = self.sensors[limit.bucket] = QuotaSensor(limit.bound, self._sample_limit, self._sample_ms)
        else:
            sensor.bound = limit.bound
        self.rules[limit.bucket] = limit.rule
        return sensor

    def note_delay(self, principal: Principal, client_id: str, throttle_ms: int, monotonic_ms: int) -> None:
        limit = self.limits.find(principal, client_id)
        if limit is not None:
            self.delays.add(limit.bucket, throttle_ms, monotonic_ms)

    def drop_idle(self, monotonic_ms: int) -> bool:
        """Drops the sensors in which nothing was recorded for an hour; returns whether any was dropped."""
        idle = [bucket for bucket, each in self.sensors.items() if monotonic_ms - each.last_record_ms > BUCKET_IDLE_MS]
        for bucket in idle:
            del self.sensors[bucket]
            self.delays.drop(bucket)
            self.rules.pop(bucket, None)
        return bool(idle)


class ClientQuotas:
    """Measures and limits the requests of clients. Only the reactor's thread may use it.

    `is_limiting` is True while at least one quota of clients is set, and `measures_time` while at least one
    request_percentage is set. Nothing is measured while `is_limiting` is False.
    """

    def __init__(
        self, config: BrokerConfig, gate: DataGate, reactor: Reactor, make_limits: Callable[[str], Limits]
    ) -> None:
        """`make_limits` returns the limits of all clients for one quota key, such as consumer_byte_rate."""
        self.is_limiting = False
        self.measures_time = False
        self._reactor = reactor
        self._gate = gate
        self._sample_limit: int = config.quota_window_num
        self.sample_ms: int = config.quota_window_size_seconds * 1000
        self._kinds = {
            key: _Kind(key, make_limits(key), self._sample_limit, self.sample_ms) for key in (PRODUCE, FETCH, REQUEST)
        }
        self._exempt = QuotaSensor(inf, self._sample_limit, self.sample_ms)
        self._shared: WeakValueDictionary[tuple[Principal, bytes], ClientLimits] = WeakValueDictionary()

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Applies the quotas of a metadata image to the next request of each client.

        As in Kafka, what clients have spent before still counts, even if they had no limit for some time.
        """
        for kind in self._kinds.values():
            kind.limits.apply(quotas)
        self.is_limiting = not all(kind.limits.is_empty for kind in self._kinds.values())
        self.measures_time = not self._kinds[REQUEST].limits.is_empty
        self._invalidate_limits()

    def _invalidate_limits(self) -> None:
        """Makes the compiled request path (the gate) discard the limits of all clients.

        The next request of each client is then handled in Python, which passes the present limits to the gate.
        """
        self._shared.clear()
        self._gate.limit(self.is_limiting, measures_time=self.measures_time)

    def check(self) -> None:
        """Applies limits that the administrator's own class (client.quota.callback.class) has changed since the last
        call, for another reason than a change of the stored quotas.
        """
        outdated = [kind.limits.is_outdated() for kind in self._kinds.values()]  # each of them is asked
        if any(outdated):
            self._invalidate_limits()

    def begin(
        self,
        connection: Connection,
        principal: Principal,
        client_id: str | None,
        api_key: int,
        size: int,
        started_ns: int,
    ) -> RequestCost:
        """Begins to measure a request, and passes the limits of its client to the compiled request path (the gate).

        `size` is the request's number of bytes; `started_ns` is the `perf_counter_ns` at which the interpreter received
        it. The returned object measures the time and charges the request to the client's quotas.
        """
        name = client_id or ""
        self._attach_limits(connection, principal, name.encode())
        return RequestCost(self, principal, name, size, started_ns, is_exempt=api_key in EXEMPT_APIS)

    def charge_held(self, connection: Connection, elapsed_ns: int) -> None:
        """Charges the client's request quota with the time that Python code has worked on a fetch that waits for data.

        Called when the compiled request path (the gate) has answered the fetch, or the fetch waits for more data. If
        Python serves the fetch instead, its handler charges the time. The time of a connection that is exempt from the
        quota is recorded as exempt. Does nothing if the client has no limit.
        """
        limits = self._gate.limits_of(connection)
        sensor = None if limits is None else limits.exempt if connection.is_exempt else limits.request
        if sensor is not None:
            sensor.record(elapsed_ns * PERCENT_PER_NS, self._reactor.monotonic_ms)

    def record_exempt(self, percent: float) -> None:
        """Records the time of a request that no quota limits; does nothing while no client's time is limited.

        `percent` is that time as the share of a thread's time, in percent.
        """
        if self.measures_time:
            self._exempt.record(percent, self._reactor.monotonic_ms)

    def exempt_time(self, monotonic_ms: int) -> float:
        """Returns the percentage of a thread's time that is spent on requests that no quota limits. Any thread may call
        it.
        """
        return self._exempt.rate(monotonic_ms)

    def _attach_limits(self, connection: Connection, principal: Principal, client_id: bytes) -> None:
        """Stores the limits of a client in its connection, for requests that compiled code (the gate) serves.

        Does nothing if the connection has the limits already and no limit has changed since.
        """
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
            exempt=self._exempt if self.measures_time else None,
            fetch_window_bytes=0 if fetch is None else self._window(fetch.bound),
        )

    def _window(self, bound: float) -> int:
        """Returns how many units (bytes) a client may spend at once after a pause.

        `bound` is the limit in units per second. The result is `bound` times the seconds in quota.window.num - 1
        samples.
        """
        return int(bound * (self._sample_limit - 1) * self.sample_ms / 1000)

    def largest_fetch(self, principal: Principal, client_id: str, max_bytes: int) -> int:
        """Returns the smaller one of `max_bytes` and the largest response that the client's quota ever allows."""
        sensor = self._kinds[FETCH].sensor(principal, client_id)
        return max_bytes if sensor is None else min(max_bytes, self._window(sensor.bound))

    def record(self, key: str, principal: Principal, client_id: str, value: float) -> int:
        """Records that the client has spent `value`: bytes, or the time of a request in percent of a thread's time.

        `key` is the configuration key of the quota, such as producer_byte_rate. Returns the throttle time in
        milliseconds; 0 if nothing limits the client.
        """
        kind = self._kinds[key]
        sensor = kind.sensor(principal, client_id)
        if sensor is None:
            return 0
        monotonic_ms = self._reactor.monotonic_ms
        sensor.record(value, monotonic_ms)
        return min(sensor.throttle_ms(monotonic_ms), kind.longest_ms)

    def note_delay(self, key: str, principal: Principal, client_id: str, throttle_ms: int) -> None:
        """Counts a client's delay of `throttle_ms` milliseconds, which begins now, in the statistics of a quota.

        `key` is the configuration key of the quota, such as producer_byte_rate.
        """
        self._kinds[key].note_delay(principal, client_id, throttle_ms, self._reactor.monotonic_ms)

    def waiting(self, key: str, monotonic_ms: int) -> int:
        """Returns how many delays of clients by one quota still last at `monotonic_ms`.

        `key` is the configuration key of the quota, such as producer_byte_rate. Any thread may call it.
        """
        return self._kinds[key].delays.waiting(monotonic_ms)

    def drop_idle(self, monotonic_ms: int) -> None:
        """Drops sensors that were not used for an hour.

        If it drops any, also makes the compiled request path (the gate) discard the limits of all clients, which refer
        to sensors.
        """
        dropped = [kind.drop_idle(monotonic_ms) for kind in self._kinds.values()]
        if any(dropped):
            self._invalidate_limits()

    def spending(self, key: str, monotonic_ms: int) -> Iterator[Spending]:
        """Yields the spending of each bucket, that is of the clients that share one limit.

        `key` is the configuration key of the quota, such as producer_byte_rate. Buckets whose clients have spent
        nothing for an hour are left out. Any thread may call it.
        """
        kind = self._kinds[key]
        for bucket, sensor in list(kind.sensors.items()):
            throttle_ms = kind.delays.average_ms(bucket, monotonic_ms)
            wait_ms = min(sensor.throttle_ms(monotonic_ms), kind.longest_ms)
            rule = kind.rules.get(bucket, "")
            yield Spending(bucket, sensor.rate(monotonic_ms), sensor.bound, rule, throttle_ms, wait_ms)

    def clients(self) -> Iterator[tuple[str, Bucket, Principal, str]]:
        """Yields (quota key, bucket, principal, client id) for each limit of each connected client that has sent a
        request since the last change of quotas. Any thread may call it."""
        buckets = {
            key: {id(sensor): bucket for bucket, sensor in list(kind.sensors.items())}
            for key, kind in self._kinds.items()
        }
        for reference in self._shared.valuerefs():
            limits = reference()
            if limits is None:
                continue
            principal, client_id = reference.key
            for key, sensor in ((PRODUCE, limits.produce), (FETCH, limits.fetch), (REQUEST, limits.request)):
                bucket = buckets[key].get(id(sensor))
                if bucket is not None:
                    yield key, bucket, principal, client_id.decode()
