"""Changes of broker keys while the broker runs."""

import threading

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


class ChangedMeanwhile(BrokerConfig):
    """A configuration in which another thread sets log.retention.ms while the file is being read again."""

    other = None

    def apply_dynamic(self, default, broker):
        if self.other is None:
            self.other = threading.Thread(target=lambda: self.apply_dynamic({"log.retention.ms": "5"}, {}))
            self.other.start()
            self.other.join(0.2)  # waits for the whole time if the thread has to wait, as it should
        return super().apply_dynamic(default, broker)


def test_a_change_while_the_file_is_read_again_is_kept():
    config = ChangedMeanwhile({})
    config.reload({"log.retention.bytes": "7"})
    config.other.join(20)
    assert (config["log.retention.ms"], config["log.retention.bytes"]) == (5, 7)
