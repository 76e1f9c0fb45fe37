"""A broker for the tests of any program: the context manager `Broker`, and fixtures of pytest (`plugin`).

    from kafkapy.testing import Broker

    with Broker() as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap_servers)

The broker is a process of its own on a random port of loopback. Its data is in a temporary directory, which is removed
at the end. The broker also ends when this process ends, even by SIGKILL.
"""

from __future__ import annotations

from kafkapy.testing.broker import Broker, BrokerFailed
from kafkapy.testing.topic_names import topic_name

__all__ = ["Broker", "BrokerFailed", "topic_name"]
