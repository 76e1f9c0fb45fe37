"""The largest numbers of connections of single addresses (`max.connections.per.ip.overrides`)."""

from __future__ import annotations

import logging
import socket
import time
from threading import Thread

from kafkapy.config import BrokerConfig
from kafkapy.config.address_limits import OVERRIDES_KEY, split_address_limits
from kafkapy.errors import ConfigError
from kafkapy.host_names import host_addresses

logger = logging.getLogger("kafka.network.ConnectionQuotas")

# After a host name could not be resolved, the next connection after this time begins another attempt.
LOOKUP_RETRY_S = 60
NEVER_S = float("inf")


def parse_address_limits(text: str, flags: int = 0) -> dict[str, int]:
    """Returns the limit of each IP address in `text`, the value `host:limit,...` of max.connections.per.ip.overrides.

    A host name stands for all its addresses. `flags` are those of `socket.getaddrinfo`. Raises ConfigError, which names
    the key, for a value of another form, or for a host name that cannot be resolved.
    """
    limits: dict[str, int] = {}
    for host, limit in split_address_limits(text):
        try:
            found = host_addresses(host, flags=flags)
        except OSError as error:
            raise ConfigError(f"Invalid value {text} for configuration {OVERRIDES_KEY}: {host}: {error}") from error
        for *_, address in found:
            limits[str(address[0])] = limit
    return limits


class AddressOverrides:
    """The limits of single addresses, which follow dynamic changes of the key. Only the reactor's thread may use it.

    Host names in a new value are resolved on another thread, for which the reactor does not wait. Until then, and if a
    name cannot be resolved, the former limits apply: an error would lose the connection that is being accepted.
    """

    def __init__(self, config: BrokerConfig) -> None:
        """Waits until the host names are resolved. Raises ConfigError if the value cannot be used."""
        self._config = config
        self._text: str = config[OVERRIDES_KEY]
        self._limits = parse_address_limits(self._text)
        self._retry_at_s = NEVER_S
        self._resolved: tuple[str, dict[str, int] | None] | None = None  # set by the other thread

    def get(self, host: str, otherwise: int) -> int:
        """Returns the limit of the address, or `otherwise` if it has none of its own."""
        text = self._config[OVERRIDES_KEY]
        resolved, self._resolved = self._resolved, None
        if resolved is not None and resolved[0] == self._text:
            self._take(resolved[1])
        if text != self._text or time.monotonic() >= self._retry_at_s:
            self._change(text)
        return self._limits.get(host, otherwise)

    def _take(self, limits: dict[str, int] | None) -> None:
        if limits is None:
            self._retry_at_s = time.monotonic() + LOOKUP_RETRY_S
        else:
            self._limits = limits

    def _change(self, text: str) -> None:
        self._text = text
        self._retry_at_s = NEVER_S
        try:
            self._limits = parse_address_limits(text, socket.AI_NUMERICHOST)
        except ConfigError:  # it has host names
            Thread(target=self._resolve, args=(text,), name="connection-limits", daemon=True).start()

    def _resolve(self, text: str) -> None:
        limits = None
        try:
            limits = parse_address_limits(text)
        except ConfigError as error:
            logger.error("%s; the former limits of addresses still apply", error)
        if text == self._text:  # otherwise it could replace the result for the newer value
            self._resolved = text, limits
