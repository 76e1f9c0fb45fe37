"""Limits on connections: in total, per listener, per address, and new connections per second.

As in Kafka, a client beyond `max.connections` or `max.connection.creation.rate` waits in the listener's backlog, and
the connection of a client beyond `max.connections.per.ip` is closed at once. The connection of an address beyond its
quota `connection_creation_rate` is closed after a delay.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy.config import BrokerConfig
from kafkapy.metrics.duration_window import DurationWindow
from kafkapy.network.address_overrides import AddressOverrides
from kafkapy.network.token_bucket import TokenBucket

logger = logging.getLogger("kafka.network.ConnectionQuotas")

ADDRESS_IDLE_MS = 3_600_000


class ConnectionQuotas:
    """The numbers of open connections and the limits on them. Only the reactor's thread may use it.

    Invariants: total == sum of the listeners' counts == sum of the addresses' counts; a count of 0 is removed. The
    limits are read from the configuration each time, so that a dynamic change applies to the next connection.
    """

    def __init__(self, config: BrokerConfig, listener_names: list[str], monotonic_ms: int) -> None:
        """Raises ConfigError if a listener has a limit of its own that cannot be parsed."""
        for name in listener_names:
            config.for_listener(name, "max.connections")  # read again for each client, when an error would be too late
        self._config = config
        self._total = 0
        self._by_listener: dict[str, int] = dict.fromkeys(listener_names, 0)
        self._by_address: dict[str, int] = {}
        self._rate = TokenBucket(config.max_connection_creation_rate, monotonic_ms)
        self._listener_rates = {
            name: TokenBucket(config.for_listener(name, "max.connection.creation.rate"), monotonic_ms)
            for name in listener_names
        }
        self._sample_limit: int = config.quota_window_num
        self._sample_ms: int = config.quota_window_size_seconds * 1000
        self._address_rates: Mapping[str | None, float] = {}
        self._sensors: dict[str, QuotaSensor] = {}
        self._dropped_ms = monotonic_ms
        window_ms = self._sample_limit * self._sample_ms // 2
        # How long listeners have waited, and after how long connections of addresses beyond their rate were closed.
        self._waits = {name: DurationWindow(monotonic_ms, window_ms) for name in listener_names}
        self._refusals = {name: DurationWindow(monotonic_ms, window_ms) for name in listener_names}
        self._overrides = AddressOverrides(config)
        broker_listeners = [name for name in listener_names if name not in config.controller_listener_names]
        self._protected = config.inter_broker_listener_name if len(broker_listeners) > 1 else None

    @property
    def total(self) -> int:
        return self._total

    def by_listener(self) -> dict[str, int]:
        """Returns the number of open connections of each listener. May be called by any thread."""
        return self._by_listener.copy()

    def is_protected(self, listener_name: str) -> bool:
        """Returns True if connections to this listener may exceed `max.connections`; for each one that does, a
        connection of another listener is closed."""
        return listener_name == self._protected

    def is_full(self) -> bool:
        """Returns True if the number of connections has reached `max.connections`."""
        limit: int = self._config.max_connections
        return self._total >= limit

    def has_room(self, listener_name: str) -> bool:
        """Returns whether the listener may accept one more connection."""
        if self._by_listener[listener_name] >= self._config.for_listener(listener_name, "max.connections"):
            return False
        return self.is_protected(listener_name) or not self.is_full()

    def delay_ms(self, listener_name: str, monotonic_ms: int) -> int:
        """Returns the milliseconds until the rate of new connections permits one more for the listener; 0 if it permits
        one now."""
        key = "max.connection.creation.rate"
        self._rate.set_rate(self._config[key], monotonic_ms)
        rate = self._listener_rates[listener_name]
        rate.set_rate(self._config.for_listener(listener_name, key), monotonic_ms)
        own_delay_ms = rate.delay_ms(monotonic_ms)
        delay_ms = own_delay_ms
        if not self.is_protected(listener_name):
            delay_ms = max(own_delay_ms, self._rate.delay_ms(monotonic_ms))
        if delay_ms:
            self._waits[listener_name].add(delay_ms, monotonic_ms)
        return delay_ms

    def average_delays(self, monotonic_ms: int) -> dict[str, tuple[float, float]]:
        """Returns two average delays in milliseconds for each listener, by its name; an average is 0 if there was no
        recent delay.

        The first is the time for which the listener accepted no connection, because the rate of new connections was
        reached. The second is the time after which it closed a connection whose address had exceeded its own rate. Any
        thread may call this.
        """
        return {
            name: (waits.average(monotonic_ms), self._refusals[name].average(monotonic_ms))
            for name, waits in self._waits.items()
        }

    def set_address_rates(self, rates: Mapping[str | None, float]) -> None:
        """Replaces the permitted new connections per second, by address; the rate of the key None applies to every
        address that is not a key."""
        self._address_rates = rates
        for host, sensor in list(self._sensors.items()):
            rate = rates.get(host, rates.get(None))
            if rate is None:
                del self._sensors[host]
            else:
                sensor.bound = rate

    def throttle_ms(self, listener_name: str, host: str, monotonic_ms: int) -> int:
        """Counts a new connection in the rate of its address. Returns 0 if the connection may be served, or the delay
        in ms after which it must be closed because the rate is exceeded.

        The delay is at most the length of one sample of the rate. A connection that is not served does not count.
        """
        rate = self._address_rates.get(host, self._address_rates.get(None)) if self._address_rates else None
        if rate is None:
            return 0
        sensor = self._sensors.get(host)
        if sensor is None:
            self._drop_idle(monotonic_ms)
            sensor = self._sensors[host] = QuotaSensor(rate, self._sample_limit, self._sample_ms)
        sensor.record(1, monotonic_ms)
        throttle_ms = min(sensor.throttle_ms(monotonic_ms), self._sample_ms)
        if throttle_ms:
            sensor.record(-1, monotonic_ms)
            self._refusals[listener_name].add(throttle_ms, monotonic_ms)
        return throttle_ms

    def _drop_idle(self, monotonic_ms: int) -> None:
        """Removes the rate sensors of addresses that have not connected for an hour. Does nothing if the last call that
        removed sensors was less than an hour ago."""
        if monotonic_ms - self._dropped_ms < ADDRESS_IDLE_MS:
            return
        self._dropped_ms = monotonic_ms
        for host, sensor in list(self._sensors.items()):
            if monotonic_ms - sensor.last_record_ms > ADDRESS_IDLE_MS:
                del self._sensors[host]

    def address_limit(self, host: str) -> int:
        """Returns the largest number of connections that the address may have."""
        return self._overrides.get(host, self._config.max_connections_per_ip)

    def has_room_for(self, host: str) -> bool:
        """Returns whether the address may have one more connection."""
        return self._by_address.get(host, 0) < self.address_limit(host)

    def spend_rate(self, listener_name: str, count: int = 1) -> None:
        """Counts accepted connections in the rates of new connections of the broker and of the listener."""
        self._rate.take(count)
        self._listener_rates[listener_name].take(count)

    def add(self, listener_name: str, host: str) -> None:
        self._total += 1
        self._by_listener[listener_name] += 1
        self._by_address[host] = self._by_address.get(host, 0) + 1

    def remove(self, listener_name: str, host: str) -> None:
        self._total -= 1
        self._by_listener[listener_name] -= 1
        remaining = self._by_address[host] - 1
        if remaining:
            self._by_address[host] = remaining
        else:
            del self._by_address[host]
