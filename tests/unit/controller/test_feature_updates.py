"""Feature levels: all updates of a request or none, and never below the level that the log needs."""

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.controller.feature_updates import FeatureUpdate, QuorumVersion, UpgradeType, update_features
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.cluster_image import ControllerRegistration
from kafkapy.metadata.features import SUPPORTED_FEATURES
from kafkapy.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE
from tests.harness.metadata import registration

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
        ("metadata.version", 16, UpgradeType.UNSAFE_DOWNGRADE),
        ("eligible.leader.replicas.version", 1, 1),
        ("kraft.version", 1, 1),
    ],
)
def test_one_wrong_update_refuses_all(wrong):
    with pytest.raises(ApiError) as caught:
        update(OLD, ("metadata.version", 22, 1), wrong)
    assert caught.value.error is Error.INVALID_UPDATE_VERSION


def refusal(image, *updates, **options):
    with pytest.raises(ApiError) as caught:
        update(image, *updates, **options)
    return caught.value.message.removeprefix(
        "The update failed for all features since the following feature had an error: "
    )


def controllers(*registered):
    return {each: ControllerRegistration(each, bytes(16), False, {}, features) for each, features in registered}


def test_every_registered_node_judges_an_update():
    """Compares with the wording of Apache Kafka 4.3's QuorumFeatures."""
    old = dict(SUPPORTED_FEATURES, **{"metadata.version": (7, 25)})
    asked = ("metadata.version", 30, 1)
    without = {name: levels for name, levels in SUPPORTED_FEATURES.items() if name != "streams.version"}
    brokers = {3: registration(3)._replace(features=old)}
    assert refusal(OLD._replace(brokers=brokers), asked) == (
        "Invalid update version 30 for feature metadata.version. Broker 3 only supports versions 7-25"
    )
    image = OLD._replace(controllers=controllers((1, old), (2, without)))
    assert update(image, asked) == [("metadata.version", 30)]  # controller 1 compares with its own code's levels
    assert refusal(image, ("streams.version", 1, 1)).endswith("Controller 2 does not support this feature.")
    voters = QuorumVersion(voter_ids=frozenset({1, 2, 5}))
    assert refusal(image, asked, quorum=voters).endswith(
        "controller 5 has not registered, and may not support this feature"
    )
    # Before metadata.version 15 controllers do not register, so that they cannot be asked.
    ancient = image._replace(features={"metadata.version": 14})
    assert update(ancient, asked, quorum=voters) == [("metadata.version", 30)]


@pytest.mark.parametrize(
    ("current", "level", "is_possible"),
    [(30, 29, False), (29, 24, True), (24, 22, False), (22, 17, True), (17, 16, False), (13, 12, False), (10, 9, True)],
)
def test_a_downgrade_must_not_cross_a_version_with_new_metadata(current, level, is_possible):
    image = EMPTY_IMAGE._replace(features={"metadata.version": current})
    asked = ("metadata.version", level, UpgradeType.SAFE_DOWNGRADE)
    if is_possible:
        assert update(image, asked) == [("metadata.version", level)]
    else:
        assert refusal(image, asked) == (
            f"Unsupported metadata.version downgrade from {current} to {level}. Refusing to perform the requested "
            "downgrade because it might delete metadata information."
        )


def test_eligible_leader_replicas_depend_on_the_metadata_version_of_the_same_request():
    asked = ("eligible.leader.replicas.version", 1, 1)
    assert refusal(OLD, asked).endswith(
        "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23"
    )
    assert len(update(OLD, ("metadata.version", 23, 1), asked)) == 3


def test_eligible_leader_replicas_remove_the_min_isr_of_single_brokers():
    configs = {
        (BROKER_RESOURCE, "2"): {"min.insync.replicas": "2"},
        (BROKER_RESOURCE, ""): {"min.insync.replicas": "3"},
    }
    image = OLD._replace(features={"metadata.version": 30}, configs=configs)
    result = update_features(image, CONFIG, [FeatureUpdate("eligible.leader.replicas.version", 1, 1)], 1)
    assert [(message.resource_name, message.value) for message, _ in result.records[:-1]] == [("2", None)]


def test_the_quorum_decides_whether_its_version_can_be_raised():
    asked = FeatureUpdate("kraft.version", 1, 1)
    assert "keeps the voters" in refusal(OLD, tuple(asked))
    result = update_features(OLD, CONFIG, [asked], 1, QuorumVersion(level=0))
    assert result.response.kraft_version == 1
    assert [type(message).__name__ for message, _ in result.records] == ["NoOpRecord"]
    waiting = QuorumVersion(level=0, refusal="Voter 3 has not sent its range.")
    assert refusal(OLD, tuple(asked), quorum=waiting).endswith("Voter 3 has not sent its range.")
    down = ("kraft.version", 0, UpgradeType.SAFE_DOWNGRADE)
    assert refusal(OLD, down, quorum=QuorumVersion(level=1)).endswith("Can't downgrade the version of this feature.")
    same = update_features(OLD, CONFIG, [asked], 1, QuorumVersion(level=1, refusal="no"))
    assert same.response.kraft_version is None and not same.records
