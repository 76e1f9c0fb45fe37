"""The address and the configuration of the client by which a broker writes its counts."""

from __future__ import annotations

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener, own_address
from kafkapy.errors import ConfigError
from kafkapy.server.audit.construction import build_audit
from tests.mock_clock import MockClock

SECURED = Listener("OUTSIDE", "SASL_SSL", "broker.example", 9093)
PLAIN = Listener("INSIDE", "PLAINTEXT", "", 9092)


@pytest.mark.parametrize(
    ("listeners", "is_secured", "address"),
    [
        ([SECURED, PLAIN], False, "localhost:9092"),
        ([SECURED, PLAIN], True, "broker.example:9093"),
        ([PLAIN._replace(host="::1")], False, "[::1]:9092"),
        ([PLAIN._replace(host="0.0.0.0")], False, "localhost:9092"),
        ([SECURED], False, None),
    ],
)
def test_a_client_on_the_same_host_connects_to(listeners, is_secured, address):
    assert own_address(listeners, is_secured=is_secured) == address


def build(listeners, **properties):
    config = BrokerConfig({"log.dirs": "/unused", "kafkapy.audit.topics": "a, b*", **properties})
    return build_audit(config, listeners, lambda work: work(), MockClock())


def test_a_broker_without_a_plain_listener_needs_the_configuration_of_a_client(tmp_path):
    with pytest.raises(ConfigError, match=r"set kafkapy\.audit\.client\.config=FILE"):
        build([SECURED])
    file = tmp_path / "client.properties"
    with pytest.raises(ConfigError, match="Cannot read the configuration file"):
        build([SECURED], **{"kafkapy.audit.client.config": str(file)})
    file.write_text("security.protocol=SASL_SSL\n")
    audit = build([SECURED], **{"kafkapy.audit.client.config": str(file)})
    assert audit.logs.is_audited("bc") and not audit.logs.is_audited("c")
