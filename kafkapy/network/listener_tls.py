"""The TLS of a node's listeners: their contexts, the principals of their clients, and changes of their stores.

A node whose listeners do not use TLS does not import this module.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping

from kafkapy._core.tls.tls_context import TlsContext
from kafkapy.config import BrokerConfig
from kafkapy.config.keys.security import RECONFIGURABLE_KEYS
from kafkapy.config.listener_ssl import listener_prefix, listener_ssl_settings, listeners_with_tls, ssl_warnings
from kafkapy.errors import ConfigError
from kafkapy.security.principal import ANONYMOUS, USER_TYPE, Principal
from kafkapy.security.tls.certificate import subject_text
from kafkapy.security.tls.cipher_suites import weak_protocols
from kafkapy.security.tls.native_context import make_tls_context
from kafkapy.security.tls.principal_mapping import MAPPING_KEY, PrincipalMapping
from kafkapy.security.tls.reconfiguration import check_change, check_trust
from kafkapy.security.tls.stores import file_states
from kafkapy.security.tls.tls_material import TlsMaterial, certificate_warnings, factory_has_changed, load_material

logger = logging.getLogger("kafka.network.SocketServer")


class ListenerTls:
    """The TLS of one listener. `context` is used for new connections; open connections keep the context that they began
    with.

    The reactor thread reads `context`; the thread that applies changes of the metadata replaces it.
    """

    def __init__(self, config: BrokerConfig, name: str, protocol: str) -> None:
        """Reads the key store and the trust store of the listener `name`, whose security protocol is `protocol`.

        Raises ConfigError, whose text says which key to correct.
        """
        self._config = config
        self._name = name
        self._protocol = protocol
        self._is_inter_broker = name == config.inter_broker_listener_name and config.is_broker
        prefix = listener_prefix(name)
        rules = config.for_listener(name, MAPPING_KEY)
        has_own_rules = prefix + MAPPING_KEY in config.originals
        self._mapping = PrincipalMapping(rules, prefix + MAPPING_KEY if has_own_rules else MAPPING_KEY)
        self._material = load_material(listener_ssl_settings(config, name, protocol), is_server=True)
        self.context: TlsContext = make_tls_context(self._material, is_server=True)
        self._lock = threading.Lock()  # guards the order in which contexts are shared
        self._use: Callable[[TlsContext], None] | None = None
        if self._is_inter_broker:
            check_trust(self._material, self._material)
        self._warn(self._material)

    def share(self, use: Callable[[TlsContext], None]) -> None:
        """Calls `use` with the context, and again with each context that replaces it."""
        with self._lock:
            self._use = use
            use(self.context)

    def principal(self, certificate: bytes | None) -> Principal:
        """Returns the principal of a client with the certificate `certificate` (DER), or of a client without one if it
        is None.

        Raises ValueError if no rule of ssl.principal.mapping.rules applies to the certificate's subject.
        """
        if certificate is None:
            return ANONYMOUS
        return Principal(USER_TYPE, self._mapping.principal_name(subject_text(certificate)))

    def check(self, overrides: Mapping[str, str]) -> None:
        """Raises ConfigError if the listener could not use its key store and trust store after a change of the
        configuration.

        `overrides` is the complete dynamic configuration of the broker after the change (text by key).
        """
        settings = listener_ssl_settings(self._config, self._name, self._protocol, overrides)
        if settings == self._material.settings and not self._has_changed_files():
            return
        material = load_material(settings, is_server=True)
        self._check_change(material)
        make_tls_context(material, is_server=True)

    def _check_change(self, material: TlsMaterial) -> None:
        check_change(
            self._material,
            material,
            allow_dn_changes=self._config.for_listener(self._name, "ssl.allow.dn.changes"),
            allow_san_changes=self._config.for_listener(self._name, "ssl.allow.san.changes"),
            is_inter_broker=self._is_inter_broker,
        )

    def refresh(self) -> None:
        """Reads the key store and trust store again if their configuration or files have changed. If that fails, or the
        stores may not replace the present ones, logs the error and keeps the present stores."""
        try:
            settings = listener_ssl_settings(self._config, self._name, self._protocol)
            has_same_settings = settings == self._material.settings
            if has_same_settings and not self._has_changed_files():
                return
            material = load_material(settings, is_server=True)
            if has_same_settings:  # `check` has checked other settings when a request has set them
                self._check_change(material)
            context = make_tls_context(material, is_server=True)
        except ConfigError as error:
            logger.error("The stores of listener %s are not changed: %s", self._name, error)
            return
        with self._lock:
            self.context = context
            if self._use is not None:
                self._use(context)
        self._material = material
        logger.info("The stores of listener %s were read again", self._name)
        self._warn(material)

    def _has_changed_files(self) -> bool:
        settings = self._material.settings
        if settings.engine_factory_class:
            return factory_has_changed(settings)
        return file_states(settings) != self._material.files

    def _warn(self, material: TlsMaterial) -> None:
        for warning in certificate_warnings(material):
            logger.warning("%s", warning)
        weak = weak_protocols(material.settings.enabled_protocols)
        if weak:
            logger.warning(
                "Listener %s does not offer the protocols %s of ssl.enabled.protocols, which are insecure",
                self._name, ", ".join(weak),
            )  # fmt: skip


class TlsListeners:
    """The TLS of all listeners that encrypt their connections, by the listener's name."""

    def __init__(self, config: BrokerConfig) -> None:
        """Reads the key store and trust store of each listener that uses TLS. Raises ConfigError if one cannot be
        used."""
        for warning in ssl_warnings(config):
            logger.warning("%s", warning)
        self._listeners = {
            name: ListenerTls(config, name, protocol) for name, protocol in listeners_with_tls(config).items()
        }

    def of(self, name: str) -> ListenerTls | None:
        """Returns the TLS of the listener `name`, or None if the listener does not use TLS."""
        return self._listeners.get(name)

    def check(self, overrides: Mapping[str, str], names: Collection[str]) -> None:
        """Raises ConfigError if a listener could not use its key store and trust store after a change of the
        configuration.

        `overrides` is the complete dynamic configuration of the broker after the change (text by key). `names` are the
        keys that the change sets or removes. A listener is checked only if one of them is a key of its stores, with the
        listener's prefix.
        """
        for name, listener in self._listeners.items():
            prefix = listener_prefix(name)
            own = [key.removeprefix(prefix) for key in names if key.startswith(prefix)]
            if not RECONFIGURABLE_KEYS.isdisjoint(own):
                listener.check(overrides)

    def refresh(self) -> None:
        """Reads each listener's key store and trust store again if their configuration or files have changed."""
        for listener in self._listeners.values():
            listener.refresh()
