"""The first records of an active controller, as Apache Kafka 4.3's ActivationRecordsGenerator writes them."""

import pytest

from kafkapy.controller.activation import activation_records
from kafkapy.metadata.image import EMPTY_IMAGE
from kafkapy.protocol.messages.metadata_records import FeatureLevelRecord
from tests.harness.metadata import bootstrapped


def names(*arguments, **options):
    return [type(message).__name__.removesuffix("Record") for message, _ in activation_records(*arguments, **options)]


def features(**levels):
    return [FeatureLevelRecord(name=name.replace("_", "."), feature_level=level) for name, level in levels.items()]


@pytest.mark.parametrize(
    ("found", "in_transaction", "expected"),
    [
        ({"metadata_version": 30}, False, "BeginTransaction FeatureLevel EndTransaction"),
        ({"metadata_version": 30}, True, "AbortTransaction BeginTransaction FeatureLevel EndTransaction"),
        ({"metadata_version": 12}, False, "FeatureLevel"),
        (
            {"metadata_version": 30, "eligible_leader_replicas_version": 1},
            False,
            "BeginTransaction FeatureLevel FeatureLevel Config EndTransaction",
        ),
    ],
)
def test_an_empty_log_begins_with_the_bootstrap_records(found, in_transaction, expected):
    assert names(EMPTY_IMAGE, features(**found), 2, in_transaction=in_transaction) == expected.split()


def test_a_failover_writes_nothing_but_the_end_of_an_open_transaction():
    assert names(bootstrapped(), [], 1, in_transaction=False) == []
    assert names(bootstrapped(), [], 1, in_transaction=True) == ["AbortTransaction"]


def test_the_cluster_begins_with_the_controllers_min_isr():
    found = features(metadata_version=30, eligible_leader_replicas_version=1)
    records = activation_records(EMPTY_IMAGE, found, 3, in_transaction=False)
    assert [message.value for message, _ in records if type(message).__name__ == "ConfigRecord"] == ["3"]
