"""Configurations of brokers, of controllers, and of nodes that are both."""

import pytest

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.controller_addresses import Address
from kafkapy.errors import ConfigError
from tests.role_refusals import ACCEPTED, BOTH, BROKER, CONTROLLER, REFUSED, SERVERS, VOTERS


@pytest.mark.parametrize("name", ACCEPTED)
def test_configurations_that_fit_the_roles_are_accepted(name):
    properties = ACCEPTED[name]
    config = BrokerConfig(properties)
    assert config.is_broker == ("broker" in properties["process.roles"])
    assert config.is_controller == ("controller" in properties["process.roles"])


@pytest.mark.parametrize("name", REFUSED)
def test_configurations_that_do_not_fit_the_roles_are_refused_in_kafkas_words(name):
    properties, text = REFUSED[name]
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig(properties)
    assert str(refusal.value) == text


def test_the_controllers_of_a_quorum():
    config = BrokerConfig({**BOTH, VOTERS: "1@h:9093,2@[::1]:9094"})
    assert config.static_voters == {1: Address("h", 9093), 2: Address("::1", 9094)}
    assert config.bootstrap_controllers == [Address("localhost", 9093), Address("localhost", 9193)]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (BOTH, ["CONTROLLER://localhost:9093"]),
        (BROKER, []),
        (ACCEPTED["controller advertised"], ["CONTROLLER://controller:9093"]),
        (ACCEPTED["every interface"], ["CONTROLLER://:9093"]),
        ({**ACCEPTED["every interface"], VOTERS: "1@voter:19093,2@h:1"}, ["CONTROLLER://voter:19093"]),
        (ACCEPTED["two controller listeners"], ["CONTROLLER://localhost:9093", "SECOND://localhost:9094"]),
    ],
)
def test_the_addresses_of_the_controller(properties, expected):
    config = BrokerConfig(properties)
    assert [str(listener) for listener in config.advertised_controller_listeners] == expected


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, True),
        ({VOTERS: "1@localhost:9093"}, True),
        ({**BOTH, SERVERS: "localhost:9093"}, True),
        ({**BOTH, SERVERS: "127.0.0.1:9093"}, True),
        (BOTH, False),
        ({**BOTH, SERVERS: "", VOTERS: "1@localhost:9093,2@localhost:9193"}, False),
        (BROKER, False),
        (CONTROLLER, False),
    ],
)
def test_only_a_node_that_names_no_other_controller_forms_a_cluster_of_its_own(properties, expected):
    assert BrokerConfig(properties).forms_own_cluster == expected


def test_keys_of_the_wrong_role_are_named():
    said = BrokerConfig(
        {
            **BROKER,
            "controller.listener.names": "CONTROLLER,SECOND",
            "num.partitions": "3",
            "broker.heartbeat.interval.ms": "5000",
        }
    ).warnings
    assert any("must be less than or equal to half of the broker.session.timeout.ms (9000 ms)" in each for each in said)
    assert (
        "controller.listener.names has multiple entries; only the first will be used since process.roles=broker: "
        "[CONTROLLER, SECOND]" in said
    )
    assert any("num.partitions is defined in the broker role." in each for each in said)


def test_a_list_loses_its_duplicates_with_a_warning():
    config = BrokerConfig({**BROKER, "process.roles": "broker,broker"})
    assert config.process_roles == ["broker"]
    assert (
        "Configuration key process.roles contains duplicate values. Duplicates will be removed. The original value is: "
        "[broker, broker], the updated value is: [broker]" in config.warnings
    )
