"""A broker does not start with topics whose records are in tiered storage."""

import pytest

from kafkapy.errors import ConfigError
from kafkapy.metadata.image import TOPIC_RESOURCE
from kafkapy.protocol.messages.metadata_records import ConfigRecord
from kafkapy.server.tiered_topics import refuse_tiered_topics
from tests.harness.metadata import bootstrapped, replay, with_brokers, with_topic


def tiered(image, name, value="true"):
    return replay(
        image, ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name="remote.storage.enable", value=value)
    )


def test_a_tiered_topic_with_a_replica_here_is_refused():
    image = with_topic(with_topic(with_brokers(bootstrapped(), 1), "a"), "b")
    image = with_brokers(image, 2)
    refuse_tiered_topics(tiered(image, "a", "false"), 1)
    image = tiered(tiered(image, "a"), "b")
    with pytest.raises(ConfigError, match=r"^2 topic\(s\) .* remote\.storage\.enable=true \(a, b\): kafkapy has no"):
        refuse_tiered_topics(image, 1)
    refuse_tiered_topics(image, 2)
