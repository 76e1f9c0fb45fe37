"""The security settings of one listener, whose keys may have the prefixes of the listener and of a SASL mechanism."""

from __future__ import annotations

from typing import Any

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.config.table import BROKER_ROWS
from kafkapy.config.value import Password, parse_value

CALLBACK_KEY = "sasl.server.callback.handler.class"
SASL_PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")


def uses_sasl(listener: Listener) -> bool:
    return listener.security_protocol in SASL_PROTOCOLS


class SaslSettings:
    """The SASL keys of one listener, read from the configuration at each call."""

    def __init__(self, config: BrokerConfig, listener_name: str) -> None:
        self._config = config
        self.listener_name = listener_name
        self.mechanisms: list[str] = config.for_listener(listener_name, "sasl.enabled.mechanisms")
        self.max_receive_bytes: int = config.for_listener(listener_name, "sasl.server.max.receive.size")
        self.failure_delay_ms: int = config.for_listener(listener_name, "connection.failed.authentication.delay.ms")

    @property
    def accepts_unsecured_tokens(self) -> bool:
        """True if OAUTHBEARER may accept tokens without a signature."""
        return self._config.kafkapy_sasl_oauthbearer_unsecured_tokens_enable

    def value(self, mechanism: str, key: str) -> Any:
        """Returns the value of `key` for a SASL mechanism of this listener.

        The first of these keys that is set has the value: `listener.name.<listener>.<mechanism>.<key>`,
        `listener.name.<listener>.<key>`, `key`.
        """
        text = self._config.text(f"{self._prefix(mechanism)}{key}")
        if text is None:
            return self._config.for_listener(self.listener_name, key)
        return parse_value(BROKER_ROWS[key], text)

    def max_session_ms(self, mechanism: str) -> int:
        """Returns connections.max.reauth.ms for a mechanism, in ms; 0 if sessions are not limited."""
        longest_ms: int = self.value(mechanism, "connections.max.reauth.ms")
        return longest_ms

    def jaas_config(self, mechanism: str) -> Password | None:
        """Returns `listener.name.<listener>.<mechanism>.sasl.jaas.config`; None if it is not set.

        A server accepts this key only with the prefixes of the listener and the mechanism.
        """
        text = self._config.text(f"{self._prefix(mechanism)}sasl.jaas.config")
        return None if text is None else Password(text)

    def _prefix(self, mechanism: str) -> str:
        return f"listener.name.{self.listener_name.lower()}.{mechanism.lower()}."
