"""The base class of brokers and controllers: the reactor thread, fatal failures, and reloading of the configuration."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkapy.config import BrokerConfig
from kafkapy.config.listener_ssl import listeners_with_tls
from kafkapy.network.socket_server import create_reactor

if TYPE_CHECKING:
    from kafkapy.network.listener_tls import TlsListeners

logger = logging.getLogger("kafka.server.KafkaRaftServer")


class ClusterNode:
    """A node of the cluster: a broker, with or without the controller's role, or a controller alone.

    `_fatal` is the first failure after which the node cannot continue; None while there was no such failure.
    """

    def __init__(self, config: BrokerConfig, on_fatal: Callable[[], None]) -> None:
        """Stores the configuration; starts no thread.

        `on_fatal()` is called once, after a failure that the node cannot survive, by the thread in which the failure
        occurred.
        """
        self.config = config
        self.reactor = create_reactor(config)
        self._reactor_thread = threading.Thread(target=self._run_reactor, name="kafka-reactor-0", daemon=True)
        self._on_fatal = on_fatal
        self._fatal: BaseException | None = None
        self._tls: TlsListeners | None = None

    def reload(self, properties: Mapping[str, str]) -> None:
        """Applies those values of a changed configuration file that may change while the node runs. Any thread may call
        it.

        `properties` is the content of the file. Key stores and trust stores are read again if their files have changed.
        Raises ConfigError, and changes nothing, if the node cannot work with the values of the file.
        """
        changed, fixed = self.config.reload(properties)
        if fixed:
            names = ", ".join(sorted(fixed))
            logger.warning("The configuration file changed keys that only a restart can change: %s", names)
        logger.info("Configuration read again; changed: %s", ", ".join(sorted(changed)) or "nothing")
        if changed:
            self._config_changed()
        self._refresh_tls()

    def _read_tls(self) -> TlsListeners | None:
        """Reads the key stores and trust stores of the listeners with TLS, and returns the TLS of these listeners.

        Returns None if no listener has TLS. Raises ConfigError if a store cannot be used.
        """
        if not listeners_with_tls(self.config):
            return None
        from kafkapy.network.listener_tls import TlsListeners

        self._tls = TlsListeners(self.config)
        return self._tls

    def _refresh_tls(self) -> None:
        """Reads the key stores and trust stores again if their settings or files have changed."""
        if self._tls is not None:
            self._tls.refresh()

    def _config_changed(self) -> None:
        """Does nothing; called after a reload of the configuration file has changed values.

        A subclass overrides this method to notify the objects that store values of the configuration.
        """

    def _run_reactor(self) -> None:
        try:
            self.reactor.run()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Records a failure after which the node cannot continue, and calls `on_fatal` at the first such failure.

        Any thread may call it.
        """
        if self._fatal is None:
            self._fatal = error
            logger.critical("Fatal error, the node stops: %s", error)
            self._on_fatal()
