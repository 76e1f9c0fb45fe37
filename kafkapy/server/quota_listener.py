"""Applies the quotas of the metadata to clients and connections.

The modules that measure quotas are imported, and their objects made, when the first quota is set.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Mapping
from functools import partial
from math import isnan
from typing import TYPE_CHECKING

from kafkapy.host_names import host_addresses
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage, QuotaEntity

if TYPE_CHECKING:
    from kafkapy._core.gate.data_gate import DataGate
    from kafkapy.network.connection_quotas import ConnectionQuotas
    from kafkapy.server.quotas.callback import QuotaCallback
    from kafkapy.server.quotas.precedence import Limits
    from kafkapy.server.services import ControllerServices

logger = logging.getLogger("kafka.server.ClientQuotaManager")

IP, CONNECTION_RATE = "ip", "connection_creation_rate"
IDLE_CHECK_MS = 600_000
# The interval at which the administrator's own class is asked whether limits have changed.
CALLBACK_CHECK_MS = 1000

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class QuotaListener:
    """A listener of changes of the metadata, which passes the quotas to the objects that enforce them.

    `on_metadata` runs on the quorum thread, which replays the metadata. The other methods run on the reactor's thread,
    which serves the requests.
    """

    def __init__(
        self,
        services: ControllerServices,
        connection_quotas: Callable[[], ConnectionQuotas],
        gate: DataGate | None = None,
    ) -> None:
        """Constructs the object of client.quota.callback.class, if this key is set. Applies no quotas yet.

        `connection_quotas` returns the object that limits connections. `gate` is the compiled code that serves usual
        Produce and Fetch requests; it is None if the node is only a controller, which enforces no quotas of bytes and
        of time. If client.quota.callback.class is set, its object chooses the limits of clients instead of the stored
        quotas; raises ConfigError if the class cannot be used.
        """
        self._services = services
        self._connection_quotas = connection_quotas
        self._gate = gate
        self._callback: QuotaCallback | None = None
        if services.config.client_quota_callback_class:
            from kafkapy.server.quotas.callback import make_callback

            self._callback = make_callback(services.config)
        # The quotas of addresses, by the name in the metadata (None for the default), and the addresses of the names
        # that have been looked up. Only the reactor's thread uses them.
        self._rates: dict[str | None, float] = {}
        self._addresses: dict[str, list[str]] = {}
        self._wanted_hosts: set[str] = set()
        self._is_looking_up = False

    def close(self) -> None:
        """Closes the object of client.quota.callback.class, if that is set. An exception of its `close` is logged."""
        if self._callback is not None:
            try:
                self._callback.close()
            except Exception:  # an error in the administrator's code does not keep the broker from stopping
                logger.exception("The quota callback %s failed to close", type(self._callback).__name__)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.changed_quotas:
            self.post(image)

    def post(self, image: MetadataImage) -> None:
        """Applies the quotas of the image on the reactor's thread."""
        quotas = image.client_quotas
        if quotas or self._services.mutation_quotas is not None or self._callback is not None:
            self._services.reactor.post(lambda: self._apply(quotas))

    def _apply(self, quotas: Quotas) -> None:
        services, config = self._services, self._services.config
        if services.mutation_quotas is None:
            from kafkapy.server.quotas.mutation_quota import MutationQuotas
            from kafkapy.server.quotas.precedence import MUTATION

            services.mutation_quotas = MutationQuotas(
                self._make_limits(MUTATION),
                config.controller_quota_window_num,
                config.controller_quota_window_size_seconds * 1000,
            )
            services.reactor.schedule(IDLE_CHECK_MS, self._drop_idle)
            if self._gate is not None:
                from kafkapy.server.quotas.client_quotas import ClientQuotas

                services.quotas = ClientQuotas(config, self._gate, services.reactor, self._make_limits)
                if self._callback is not None:
                    services.reactor.schedule(CALLBACK_CHECK_MS, self._check_callback)
        services.mutation_quotas.apply(quotas)
        if services.quotas is not None:
            services.quotas.apply(quotas)
        rates = _address_rates(quotas)
        if rates or self._rates:
            self._apply_rates(rates)

    def _apply_rates(self, rates: dict[str | None, float]) -> None:
        """Applies the quotas of addresses. Those of host names follow when the handler pool has looked the names up,
        because this thread and the quorum thread must not wait for DNS."""
        previous, self._rates = self._rates, rates
        names = {name for name in rates if name is not None}
        self._addresses = {name: found for name, found in self._addresses.items() if name in names}
        hosts = []
        for name in names:
            address = _address(name)
            if address is not None:
                self._addresses[name] = [address]
            elif name not in self._addresses or rates[name] != previous.get(name):
                hosts.append(name)
        self._set_rates()
        self._wanted_hosts.update(hosts)
        self._look_up_wanted()

    def _look_up_wanted(self) -> None:
        if self._wanted_hosts and not self._is_looking_up:
            self._is_looking_up = True
            self._services.handler_pool.submit(partial(self._look_up, sorted(self._wanted_hosts)))
            self._wanted_hosts.clear()

    def _look_up(self, hosts: list[str]) -> Callable[[], None]:
        """Returns a function that applies the quotas of host names to the hosts' addresses. It is called on the
        reactor's thread. A name that cannot be resolved is left out; the next change of its quota tries again.

        One thread looks up all names one after the other, so that slow name servers leave the others to the clients.
        """
        looked_up: dict[str, list[str]] = {}
        for host in hosts:
            try:
                looked_up[host] = sorted({str(found[4][0]) for found in host_addresses(host)})
            except OSError as error:
                logger.error("The ip quota of %s is ignored: %s", host, error)

        def apply() -> None:
            self._is_looking_up = False
            self._addresses |= {host: found for host, found in looked_up.items() if host in self._rates}
            self._set_rates()
            self._look_up_wanted()

        return apply

    def _set_rates(self) -> None:
        """Passes the quotas of the addresses that are known to the object that limits connections."""
        by_address: dict[str | None, float] = {}
        for name, rate in self._rates.items():
            for address in [None] if name is None else self._addresses.get(name, ()):
                by_address[address] = rate
        self._connection_quotas().set_address_rates(by_address)

    def _make_limits(self, key: str) -> Limits:
        if self._callback is None:
            from kafkapy.server.quotas.precedence import StoredLimits

            return StoredLimits(key)
        from kafkapy.server.quotas.callback import CallbackLimits

        return CallbackLimits(self._callback, key)

    def _check_callback(self) -> None:
        services = self._services
        if services.quotas is not None:
            services.quotas.check()
        services.reactor.schedule(CALLBACK_CHECK_MS, self._check_callback)

    def _drop_idle(self) -> None:
        services = self._services
        if services.mutation_quotas is not None:
            services.mutation_quotas.drop_idle(services.clock.monotonic_ms())
        if services.quotas is not None:
            services.quotas.drop_idle(services.reactor.monotonic_ms)
        services.reactor.schedule(IDLE_CHECK_MS, self._drop_idle)


def _address_rates(quotas: Quotas) -> dict[str | None, float]:
    """Returns the number of connections per second that each IP address or host, by its name, may create.

    The rate of the key None applies to every address that has none.
    """
    rates: dict[str | None, float] = {}
    for entity, values in quotas.items():
        if len(entity) == 1 and entity[0][0] == IP and CONNECTION_RATE in values:
            rate = values[CONNECTION_RATE]
            rates[entity[0][1]] = 0 if isnan(rate) else int(rate)  # it may differ from an integer by a little
    return rates


def _address(name: str) -> str | None:
    """Returns the usual text of an IP address; None if `name` is a host name."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None
