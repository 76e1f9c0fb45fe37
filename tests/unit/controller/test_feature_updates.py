"""Feature levels: all updates of a request or none, and never below the level that the log needs."""

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.controller.feature_updates import FeatureUpdate, UpgradeType, update_features
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import EMPTY_IMAGE

CONFIG = BrokerConfig({"process.roles": "broker,controller", "node.id": "1"})
OLD = EMPTY_IMAGE._replace(features={"metadata.version": 21, "share.version": 1})


def update(image, *updates, **options):
    result = update_features(image, CONFIG, [FeatureUpdate(*each) for each in updates], 1, **options)
    return [(message.name, getattr(message, "feature_level", None)) for message, _ in result.records]


def test_upgrades_and_downgrades():
    assert update(OLD, ("metadata.version", 30, 1)) == [("metadata.version", 30)]
    assert update(OLD, ("share.version", 1, 1)) == []
    assert update(OLD, ("share.version", 0, UpgradeType.SAFE_DOWNGRADE)) == [("share.version", 0)]
    assert update(OLD, ("metadata.version", 30, 1), validate_only=True) == []


def test_eligible_leader_replicas_need_one_min_isr_for_the_cluster():
    new = OLD._replace(features={"metadata.version": 30})
    assert update(new, ("eligible.leader.replicas.version", 1, 1)) == [
        ("min.insync.replicas", None),
        ("eligible.leader.replicas.version", 1),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        ("share.version", 9, 1),
        ("share.version", -1, 1),
        ("share.version", 0, 1),
        ("share.version", 1, 9),
        ("group.version", 1, UpgradeType.SAFE_DOWNGRADE),
        ("nothing", 1, 1),
        ("metadata.version", 1, UpgradeType.UNSAFE_DOWNGRADE),
        ("metadata.version", 20, UpgradeType.UNSAFE_DOWNGRADE),
        ("eligible.leader.replicas.version", 1, 1),
        ("kraft.version", 1, 1),
    ],
)
def test_one_wrong_update_refuses_all(wrong):
    with pytest.raises(ApiError) as caught:
        update(OLD, ("metadata.version", 22, 1), wrong)
    assert caught.value.error is Error.INVALID_UPDATE_VERSION
