"""The pytest plug-in, which pytest loads wherever kafkapy is installed.

It defines the fixtures `kafka_broker`, `kafka_bootstrap_servers` and `kafka_topic`. The broker starts when the first
test needs it, and serves all tests of the session. With xdist each worker has a broker of its own. A conftest.py can
override the fixture `kafka_broker_settings` to configure the broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafkapy.testing import Broker


@pytest.fixture(scope="session")
def kafka_broker_settings() -> Mapping[str, object]:
    """Returns keys of the broker's configuration. Override this fixture to change them."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_broker_settings: Mapping[str, object]) -> Iterator[Broker]:
    """Yields a running `kafkapy.testing.Broker`, which all tests of the session share."""
    from kafkapy.testing import Broker  # imported only when a test needs a broker

    with Broker(kafka_broker_settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(kafka_broker: Broker) -> str:
    """Returns the address of the broker, for a client's `bootstrap.servers`."""
    return kafka_broker.bootstrap_servers


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker: Broker) -> str:
    """Creates a topic that no other test uses, and returns the topic's name. The name begins with the test's name, and
    the topic has `num.partitions` partitions."""
    from kafkapy.testing import topic_name

    return kafka_broker.create_topic(topic_name(request.node.name))
