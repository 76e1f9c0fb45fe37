"""Checks of requests that change the keys and certificates of this broker's listeners while it runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kafkapy.errors import ApiError, ConfigError, Error

if TYPE_CHECKING:
    from kafkapy.network.listener_tls import TlsListeners


def check_store_changes(tls: TlsListeners, overrides: Mapping[str, str], names: Collection[str]) -> None:
    """Raises ApiError(INVALID_REQUEST) if a listener cannot use the key and trust stores that `overrides` describe.

    `overrides` are the dynamic keys of this broker after the request. `names` are the keys that the request sets or
    removes, even if their values do not change; only the listeners of these keys are checked. Reads their stores, and
    tests the stores of a listener between brokers by a TLS handshake, which takes some milliseconds.
    """
    try:
        tls.check(overrides, names)
    except ConfigError as error:
        raise ApiError(
            Error.INVALID_REQUEST, f"Validation of dynamic config update of SSLFactory failed: {error}"
        ) from error
