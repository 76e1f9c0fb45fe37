"""UpdateFeatures (KIP-584): new finalized levels, all of a request or none."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.controller.configs import MIN_ISR
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    supports_elr,
)
from kafkapy.metadata.image import BROKER_RESOURCE, MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.protocol.messages.metadata_records import ConfigRecord, FeatureLevelRecord


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The update of one feature. `upgrade_type` is the number on the wire."""

    name: str
    level: int
    upgrade_type: int


def update_features(
    image: MetadataImage,
    broker_config: BrokerConfig,
    updates: Sequence[FeatureUpdate],
    node_id: int,
    *,
    validate_only: bool = False,
) -> ControllerResult[None]:
    """Updates the features. Raises ApiError(INVALID_UPDATE_VERSION) for the first invalid update; then nothing is
    written."""
    records: list[MessageAndVersion] = []
    for update in updates:
        try:
            records += _update(image, broker_config, update, node_id)
        except ApiError as error:
            text = f"Invalid update version {update.level} for feature {update.name}. {error.message}"
            raise ApiError(
                Error.INVALID_UPDATE_VERSION,
                f"The update failed for all features since the following feature had an error: {text}",
            ) from None
    return ControllerResult([] if validate_only else records, None)


def _update(
    image: MetadataImage, broker_config: BrokerConfig, update: FeatureUpdate, node_id: int
) -> list[MessageAndVersion]:
    name, level = update.name, update.level
    if update.upgrade_type not in list(UpgradeType):
        raise _invalid("The controller does not support the given upgrade type.")
    current = image.metadata_version if name == METADATA_VERSION else image.features.get(name, 0)
    if level < 0:
        raise _invalid("A feature version cannot be less than 0.")
    supported = SUPPORTED_FEATURES.get(name)
    if supported is None:
        raise _invalid(f"Local controller {node_id} does not support this feature.")
    lowest, highest = supported
    if not (lowest <= level <= highest or (level == 0 and name != METADATA_VERSION)):
        raise _invalid(f"Local controller {node_id} only supports versions {lowest}-{highest}")
    if name == KRAFT_VERSION:
        raise _invalid(f"Local controller {node_id} keeps the voters as they were formatted.")
    if level < current and update.upgrade_type == UpgradeType.UPGRADE:
        raise _invalid(
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > current and update.upgrade_type != UpgradeType.UPGRADE:
        raise _invalid("Can't downgrade to a newer version.")
    if level == current:
        return []
    if name == METADATA_VERSION and level < current:
        raise _invalid("Refusing to perform the requested downgrade because it might delete metadata information.")
    if name == ELIGIBLE_LEADER_REPLICAS_VERSION and level:
        return [*_enable_elr(image, broker_config), (FeatureLevelRecord(name=name, feature_level=level), 0)]
    return [(FeatureLevelRecord(name=name, feature_level=level), 0)]


def _enable_elr(image: MetadataImage, broker_config: BrokerConfig) -> list[MessageAndVersion]:
    """Returns the records that eligible leader replicas need: one min.insync.replicas for the cluster (KIP-966)."""
    if not supports_elr(image.metadata_version):
        raise _invalid(f"It depends on a later {METADATA_VERSION} than {image.metadata_version}.")
    if MIN_ISR in image.config(BROKER_RESOURCE, ""):
        return []
    value = str(broker_config[MIN_ISR])
    return [(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MIN_ISR, value=value), 0)]


def _invalid(text: str) -> ApiError:
    return ApiError(Error.INVALID_UPDATE_VERSION, text)
