"""The verdicts on what brokers tell: which entries concern a group, and which do not."""

from __future__ import annotations

import pytest

from kafkapy.client.admin import MemberDescription
from kafkapy.console.broker_verdicts import throttled, too_large
from kafkapy.console.cluster_view import Ends
from kafkapy.console.group_lag import PartitionLag, verdicts
from kafkapy.types import TopicPartition

PARTITION = TopicPartition("orders", 0)
MEMBERS = [MemberDescription("m-1", None, "reader", "/10.0.0.7", (PARTITION,))]
LAGS = [PartitionLag(PARTITION, 5, Ends(0, 9), 9, "m-1")]
QUOTA = {
    "quota": "consumer_byte_rate",
    "rule": "client-id reader",
    "limit": 1000.0,
    "throttle_ms": 0,
    "average_throttle_ms": 120.0,
    "clients": [{"user": "User:alice", "client_id": "reader"}],
}
FETCH = {
    "client_id": "reader",
    "host": "10.0.0.7",
    "topic": "orders",
    "partition": 0,
    "fetch_offset": 5,
    "batch_bytes": 5000,
    "partition_max_bytes": 1000,
    "max_bytes": 50_000,
    "age_ms": 200,
}


def test_a_quota_that_delays_a_member_is_a_verdict():
    (verdict,) = throttled(3, [QUOTA], MEMBERS)
    assert verdict.kind == "bad"
    assert "broker 3 has delayed the client 'reader' of User:alice by 120 ms on average" in verdict.text
    assert "The quota consumer_byte_rate of client-id reader permits 1\u202f000 bytes per second." in verdict.text
    (verdict,) = throttled(3, [{**QUOTA, "throttle_ms": 2500}], MEMBERS)
    assert "; now for 2.5 s" in verdict.text


@pytest.mark.parametrize(
    "change",
    [
        {"quota": "producer_byte_rate"},
        {"quota": "controller_mutation_rate"},
        {"average_throttle_ms": 0.0},
        {"clients": [{"user": "User:alice", "client_id": "another"}]},
        {"clients": []},
    ],
)
def test_other_quotas_are_no_verdict(change):
    assert throttled(3, [{**QUOTA, **change}], MEMBERS) == []


def test_a_batch_larger_than_the_fetch_is_a_verdict():
    (verdict,) = too_large(3, [FETCH], MEMBERS, LAGS)
    assert verdict.kind == "warn"
    assert "the batch at offset 5 of orders-0 has 4.9 KiB, and the fetches of 'reader' permit 1000 B" in verdict.text
    assert "Raise max.partition.fetch.bytes of the consumer." in verdict.text


def test_the_limit_of_the_whole_response_has_another_remedy():
    (verdict,) = too_large(3, [{**FETCH, "partition_max_bytes": 9000, "max_bytes": 2000}], MEMBERS, LAGS)
    assert "permit 2.0 KiB" in verdict.text
    assert "Raise fetch.max.bytes of the consumer or of the broker" in verdict.text


@pytest.mark.parametrize(
    "change",
    [{"client_id": "another"}, {"host": "10.0.0.8"}, {"partition": 1}, {"topic": "others"}, {"age_ms": 60_001}],
)
def test_other_fetches_are_no_verdict(change):
    assert too_large(3, [{**FETCH, **change}], MEMBERS, LAGS) == []


def test_a_partition_without_lag_needs_no_reason():
    assert too_large(3, [FETCH], MEMBERS, [LAGS[0]._replace(committed=9)]) == []


def test_the_verdicts_of_brokers_are_among_those_of_the_group():
    (verdict,) = throttled(3, [QUOTA], MEMBERS)
    assert verdict in verdicts(None, LAGS, [], [verdict])
