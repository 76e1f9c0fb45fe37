"""Broker configurations made of typed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.config.broker_keys import BrokerKeys


class FixedBrokerKeys(BrokerKeys):
    """A configuration with the given typed values, which are neither parsed nor checked; other keys raise KeyError."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
