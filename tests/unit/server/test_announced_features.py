"""Features that Apache Kafka's controllers require from a broker, although the APIs behind them are not served yet
(docs/decisions/announced-features.md)."""

import pytest

from kafkapy.metadata.features import BOOTSTRAP_FEATURES, SUPPORTED_FEATURES
from kafkapy.protocol.api import ApiKey
from kafkapy.server.handlers import HANDLER_MODULES


@pytest.mark.parametrize(("feature", "prefix"), [("streams.version", "STREAMS")])
def test_the_feature_is_announced_and_its_apis_are_not_served(feature, prefix):
    assert SUPPORTED_FEATURES[feature] == (0, 1)
    assert dict(BOOTSTRAP_FEATURES)[feature] == 1  # as Apache Kafka 4.3 formats a directory
    apis = [key for key in ApiKey if prefix in key.name]
    assert apis and not any(key in HANDLER_MODULES for key in apis)
