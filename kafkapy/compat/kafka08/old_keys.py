"""Translates the configuration keys of Apache Kafka 0.8's clients to the keys of the present clients."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kafkapy.errors import ConfigError

log = logging.getLogger("kafkapy.compat.kafka08")


def translate(given: Mapping[str, Any], keys: Mapping[str, str | None]) -> dict[str, Any]:
    """Returns a configuration of today's client for one of Kafka 0.8's.

    `keys` has today's key for each old one, None for a key that no longer has an effect; such a key in `given` causes a
    warning. A key that is not in `keys` is not changed, so that keys of today's client can be used too.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        today = keys.get(name, name)
        if today is not None:
            found[today] = value
        else:
            log.warning("The configuration key %s of Kafka 0.8 has no effect in kafkapy's client.", name)
    if not found.get("bootstrap.servers"):
        hint = " (zookeeper.connect does not: there is no ZooKeeper)" if "zookeeper.connect" in given else ""
        raise ConfigError(f"metadata.broker.list or bootstrap.servers must name the brokers{hint}")
    return found
