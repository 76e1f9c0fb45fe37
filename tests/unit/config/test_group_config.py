"""Overrides of the configuration of groups."""

from __future__ import annotations

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.config.group_config import GROUP_ROWS, validate_group_overrides
from kafkapy.config.value import parse_value
from kafkapy.errors import ApiError, Error
from tests.api_client import CONFIG


@pytest.mark.parametrize(
    ("overrides", "values"),
    [
        ({"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "6000"}, [50000, 6000]),
        ({"share.auto.offset.reset": "by_duration:P1DT2H"}, ["by_duration:P1DT2H"]),
        ({"streams.num.standby.replicas": "2"}, [2]),
        ({}, []),
    ],
)
def test_good_overrides_are_accepted(overrides: dict[str, str], values: list[object]) -> None:
    validate_group_overrides(BrokerConfig(CONFIG), overrides)
    assert [parse_value(GROUP_ROWS[name], text) for name, text in overrides.items()] == values


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("x", "1", "Unknown group config name: x"),
        ("consumer.heartbeat.interval.ms", "x", "Not a number of type INT"),
        ("consumer.session.timeout.ms", "0", "Value must be at least 1"),
        ("consumer.session.timeout.ms", "44999", "greater than or equal to group.consumer.min.session.timeout.ms"),
        ("consumer.session.timeout.ms", "60001", "less than or equal to group.consumer.max.session.timeout.ms"),
        ("streams.num.standby.replicas", "3", "less than or equal to group.streams.max.standby.replicas"),
        ("share.auto.offset.reset", "by_duration:P", "by_duration:<PnDTnHnMn.nS>"),
    ],
)
def test_bad_overrides_are_refused_in_kafkas_words(name: str, value: str, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        validate_group_overrides(BrokerConfig(CONFIG), {name: value})
    assert raised.value.error is Error.INVALID_CONFIG
    assert message in str(raised.value.message)
