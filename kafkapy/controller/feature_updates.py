"""UpdateFeatures (KIP-584): changes the finalized levels of features, if all nodes support the new levels.

Either all updates of a request are carried out, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.controller.result import ControllerResult
from kafkapy.controller.settings import MIN_ISR
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    loses_metadata,
    supports_controller_registration,
)
from kafkapy.metadata.image import BROKER_RESOURCE, MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.metadata.release_features import DEPENDENCIES
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import ConfigRecord, FeatureLevelRecord, NoOpRecord

DISABLED = (0, 0)


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The update of one feature to `level`. `upgrade_type` is the number in an UpdateFeatures request."""

    name: str
    level: int
    upgrade_type: int


class QuorumVersion(NamedTuple):
    """The kraft.version of the quorum. It is determined by control records instead of metadata records (KIP-853).

    If `level` is None, the metadata records determine the level. `refusal` is the reason why the quorum cannot be
    upgraded now, for example that a voter has not sent its supported range yet; None if the quorum can be upgraded.
    `voter_ids` are the controllers that must have registered before a feature is updated.
    """

    level: int | None = None
    refusal: str | None = None
    voter_ids: frozenset[int] = frozenset()


class UpdatedFeatures(NamedTuple):
    """The response to an update of features.

    `kraft_version` is the level that the caller has to write, with all voters, into a control batch before it responds;
    None if kraft.version does not change.
    """

    kraft_version: int | None = None


def update_features(
    image: MetadataImage,
    broker_config: BrokerConfig,
    updates: Sequence[FeatureUpdate],
    node_id: int,
    quorum: QuorumVersion | None = None,
    *,
    validate_only: bool = False,
) -> ControllerResult[UpdatedFeatures]:
    """Updates the finalized levels of features; `node_id` is the id of this controller.

    If `quorum` is None, kraft.version cannot be changed. Raises ApiError(INVALID_UPDATE_VERSION) for the first invalid
    update; then no feature is changed.
    """
    records: list[MessageAndVersion] = []
    kraft_version: int | None = None
    if quorum is None:
        quorum = QuorumVersion(refusal=f"Local controller {node_id} keeps the voters as they were formatted.")
    proposed = image.features | {METADATA_VERSION: image.metadata_version}
    proposed |= {update.name: update.level for update in updates}
    for update in updates:
        try:
            level = _checked_level(image, update, node_id, quorum)
            if update.name == KRAFT_VERSION:
                if level is not None:
                    kraft_version = level
                    records.append((NoOpRecord(), 0))
                continue
            records += _records(image, broker_config, update, proposed)
        except ApiError as error:
            raise ApiError(
                Error.INVALID_UPDATE_VERSION,
                f"The update failed for all features since the following feature had an error: {error.message}",
            ) from None
    if validate_only:
        return ControllerResult([], UpdatedFeatures())
    return ControllerResult(records, UpdatedFeatures(kraft_version))


def _checked_level(image: MetadataImage, update: FeatureUpdate, node_id: int, quorum: QuorumVersion) -> int | None:
    """Returns the level that `update` sets, or None if this is the current level.

    Raises ApiError(INVALID_UPDATE_VERSION) for an invalid update.
    """
    name, level = update.name, update.level
    if update.upgrade_type not in list(UpgradeType):
        raise _invalid(update, "The controller does not support the given upgrade type.")
    current = image.metadata_version if name == METADATA_VERSION else image.features.get(name, 0)
    if name == KRAFT_VERSION and quorum.level is not None:
        current = quorum.level
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    reason = _reason_not_supported(image, name, level, node_id, quorum)
    if reason is not None:
        raise _invalid(update, reason)
    if level < current and update.upgrade_type == UpgradeType.UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if level > current and update.upgrade_type != UpgradeType.UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if name == KRAFT_VERSION:
        if level < current:
            raise _invalid(update, "Can't downgrade the version of this feature.")
        if quorum.refusal is not None and (quorum.level is None or level != current):
            raise _invalid(update, quorum.refusal)
    return None if level == current else level


def _reason_not_supported(
    image: MetadataImage, name: str, level: int, node_id: int, quorum: QuorumVersion
) -> str | None:
    """Returns the reason why a node does not support the `level` of the feature `name`; None if all nodes support
    it."""
    reason = _outside(f"Local controller {node_id}", SUPPORTED_FEATURES, name, level)
    if reason is not None:
        return reason
    for broker in image.brokers.values():
        reason = _outside(f"Broker {broker.broker_id}", broker.features, name, level)
        if reason is not None:
            return reason
    if not supports_controller_registration(image.metadata_version):
        return None
    for controller in image.controllers.values():
        if controller.controller_id == node_id:
            continue
        reason = _outside(f"Controller {controller.controller_id}", controller.features, name, level)
        if reason is not None:
            return reason
    for voter_id in sorted(quorum.voter_ids - {node_id, *image.controllers}):
        return f"controller {voter_id} has not registered, and may not support this feature"
    return None


def _outside(node: str, features: Mapping[str, tuple[int, int]], name: str, level: int) -> str | None:
    lowest, highest = features.get(name, DISABLED)
    if lowest <= level <= highest:
        return None
    if highest == 0:
        return f"{node} does not support this feature."
    return f"{node} only supports versions {lowest}-{highest}"


def _records(
    image: MetadataImage, broker_config: BrokerConfig, update: FeatureUpdate, proposed: Mapping[str, int]
) -> list[MessageAndVersion]:
    name, level = update.name, update.level
    if name == METADATA_VERSION:
        _check_metadata_version(image, level)
    else:
        _check_dependencies(update, proposed)
    if level == (image.metadata_version if name == METADATA_VERSION else image.features.get(name, 0)):
        return []
    record = (FeatureLevelRecord(name=name, feature_level=level), 0)
    if name == ELIGIBLE_LEADER_REPLICAS_VERSION and level:
        return [*_elr_safety_records(image, broker_config), record]
    return [record]


def _check_metadata_version(image: MetadataImage, level: int) -> None:
    """Raises ApiError for a downgrade to a metadata.version that cannot represent all records of the current one."""
    current = image.metadata_version
    if level < current and loses_metadata(current, level):
        raise ApiError(
            Error.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {level}. Refusing to perform the requested "
            "downgrade because it might delete metadata information.",
        )


def _check_dependencies(update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
    for name, level in DEPENDENCIES.get((update.name, update.level), {}).items():
        if proposed.get(name, 0) < level:
            raise _invalid(
                update, f"{update.name} could not be set to {update.level} because it depends on {name} level {level}"
            )


def _elr_safety_records(image: MetadataImage, broker_config: BrokerConfig) -> list[MessageAndVersion]:
    """Returns the configuration records that are written when eligible leader replicas (KIP-966) are enabled.

    They set min.insync.replicas for the cluster if it is not set, and remove it from single brokers.
    """
    records: list[MessageAndVersion] = []
    if MIN_ISR not in image.config(BROKER_RESOURCE, ""):
        records.append(_min_isr_record("", str(broker_config[MIN_ISR])))
    for resource_type, resource_name in image.configs:
        is_broker = resource_type == BROKER_RESOURCE and bool(resource_name)
        if is_broker and MIN_ISR in image.config(resource_type, resource_name):
            records.append(_min_isr_record(resource_name, None))
    return records


def _min_isr_record(broker: str, value: str | None) -> MessageAndVersion:
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=MIN_ISR, value=value), 0


def _invalid(update: FeatureUpdate, text: str) -> ApiError:
    return ApiError(
        Error.INVALID_UPDATE_VERSION, f"Invalid update version {update.level} for feature {update.name}. {text}"
    )
