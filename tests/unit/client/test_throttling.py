"""A client waits as long as a broker demands, and counts the throttle times."""

from __future__ import annotations

import pytest

from kafkapy.client.configuration import producer_config
from kafkapy.client.network import NEVER
from kafkapy.client.throttling import ThrottleTimes
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.harness.client import MemoryBrokers, client_settings


@pytest.fixture
def brokers():
    harness = MemoryBrokers()
    yield harness
    harness.close()


@pytest.mark.parametrize(("version", "waits"), [(1, False), (2, True), (4, True)])
def test_no_request_is_sent_before_the_time_is_over(brokers, version, waits):
    brokers.versions[ApiKey.LIST_GROUPS] = (0, version)
    brokers.answers[ApiKey.LIST_GROUPS] = lambda request, version: ListGroupsResponse(throttle_time_ms=700)
    network = brokers.network(producer_config(client_settings()))
    assert network.wait_until(lambda: network.metadata.updates > 0, 5)
    ended = []
    with network.lock:
        network.submit(1, ApiKey.LIST_GROUPS, lambda version: ListGroupsRequest(), lambda *each: ended.append(each))
    assert network.wait_until(lambda: bool(ended), 5)
    now_ms = brokers.clock.monotonic_ms()
    with network.lock:
        assert network.is_ready(1) is not waits
        assert network.ready_from_ms(1) == (now_ms + 700 if waits else NEVER)
    network.wait_until(lambda: False, 0.7)
    with network.lock:
        assert network.is_ready(1)
        assert network.ready_from_ms(1) == NEVER
    network.close()


def test_times_are_counted_with_those_of_responses_without_delay():
    times = ThrottleTimes()
    assert (times.average_ms, times.max_ms) == (0, 0)
    for throttle_ms in (0, 30, 0, 10):
        times.add(throttle_ms)
    assert (times.count, times.average_ms, times.max_ms) == (4, 10, 30)
