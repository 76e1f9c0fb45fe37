"""Applies the quotas of the metadata to clients and connections.

The modules that measure quotas are imported, and their objects made, when the first quota is set.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Mapping
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
        self._has_addresses = False

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
            rates = _address_rates(quotas)
            self._services.reactor.post(lambda: self._apply(quotas, rates))

    def _apply(self, quotas: Quotas, rates: dict[str | None, float]) -> None:
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
        if rates or self._has_addresses:
            self._has_addresses = bool(rates)
            self._connection_quotas().set_address_rates(rates)

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
    """Returns the number of connections per second that each IP address may create.

    The rate of the key None applies to every address that is not a key. Resolves host names, which may block.
    """
    rates: dict[str | None, float] = {}
    for entity, values in quotas.items():
        if len(entity) == 1 and entity[0][0] == IP and CONNECTION_RATE in values:
            name = entity[0][1]
            for address in [None] if name is None else _addresses(name):
                rate = values[CONNECTION_RATE]
                rates[address] = 0 if isnan(rate) else int(rate)  # the value may differ from an integer by a little
    return rates


def _addresses(name: str) -> list[str]:
    try:
        return [str(ipaddress.ip_address(name))]
    except ValueError:
        try:
            return sorted({str(found[4][0]) for found in host_addresses(name)})
        except OSError as error:
            logger.error("The ip quota of %s is ignored: %s", name, error)
            return []
