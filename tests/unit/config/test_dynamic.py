"""Changes of broker keys while the broker runs."""

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.config.dynamic import validate_broker_overrides
from kafkapy.config.row import ConfigSource
from kafkapy.errors import ApiError, Error


@pytest.mark.parametrize(
    ("name", "value", "per_broker"),
    [
        ("log.segment.bytes", "2000000", False),
        ("log.segment.bytes", "2000000", True),
        ("listeners", "PLAINTEXT://h:1", True),
        ("listener.name.plaintext.max.connections", "5", True),
        ("leader.replication.throttled.rate", "5", True),
        ("a.custom.key", "x", False),
    ],
)
def test_changeable_keys_are_accepted_and_applied(name, value, per_broker):
    validate_broker_overrides({name: value}, per_broker=per_broker)
    config = BrokerConfig({})
    _, complaints = config.apply_dynamic({}, {name: value})
    assert complaints == []
    assert config.source(name) is ConfigSource.DYNAMIC_BROKER


@pytest.mark.parametrize(
    ("name", "value", "per_broker", "message"),
    [
        ("node.id", "2", True, "Cannot update these configs dynamically: [node.id]"),
        (
            "listeners",
            "PLAINTEXT://h:1",
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        ("num.io.threads", "x", True, "Invalid value x for configuration num.io.threads: Not a number of type INT"),
    ],
)
def test_fixed_keys_and_bad_values_are_refused(name, value, per_broker, message):
    with pytest.raises(ApiError) as raised:
        validate_broker_overrides({name: value}, per_broker=per_broker)
    assert raised.value.error is Error.INVALID_REQUEST
    assert raised.value.message == message
